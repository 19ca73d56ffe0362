// Shapes to train: named ones, and the config.json of a model in the released form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::train {

// What a model takes from its tokenizer.
struct VocabularyIds {
  std::size_t size = 0;
  std::optional<std::int32_t> bos, eos, pad;
};

// A config.json of the released form (language model under text_config, experts MXFP4) from a named
// shape (nano, mini, small) or the config.json at that path, with the JSON object `changes` put on
// top of its text_config. A list of layers may be left out of `changes` when the number of layers
// changes: it then follows the pattern of K3 (three KDA, one MLA; MLA last). Throws Error for an
// unknown shape or a changed field that the shape does not have.
std::string model_config_text(const std::string& shape, std::string_view changes,
                              const VocabularyIds& vocabulary);

}  // namespace triax::train
