// From segments to token ids.
#include <algorithm>
#include <array>

#include "triax/chat/render.h"

namespace triax::chat {
namespace {

constexpr std::array<Role, 4> kNeeded = {Role::Open, Role::Close, Role::Sep, Role::EndOfMsg};

void append(const Segment& segment, const Tokenizer& tokenizer, std::vector<std::int32_t>& ids) {
  if (segment.kind == SegmentKind::structure) {
    ids.push_back(tokenizer.required_id(segment.role));
    return;
  }
  const std::vector<std::int32_t> more = segment.kind == SegmentKind::text
                                             ? tokenizer.encode(segment.text)
                                             : tokenizer.encode_control(segment.text);
  ids.insert(ids.end(), more.begin(), more.end());
}

const KnownBody* body_of(const MessageSpan& span, const std::vector<KnownBody>& known) {
  if (span.body == span.end || !span.index) return nullptr;
  const auto found = std::find_if(known.begin(), known.end(), [&](const KnownBody& body) {
    return body.message == *span.index;
  });
  return found == known.end() ? nullptr : &*found;
}

}  // namespace

Encoded encode(const Rendered& rendered, const Tokenizer& tokenizer,
               const std::vector<KnownBody>& known) {
  Encoded out;
  const auto& segments = rendered.segments;
  std::vector<std::size_t> starts(segments.size() + 1, 0);  // in ids, by segment
  std::size_t message = 0;                                  // the next one whose body may come
  for (std::size_t i = 0; i < segments.size();) {
    starts[i] = out.ids.size();
    while (message < rendered.messages.size() && rendered.messages[message].body < i) ++message;
    const KnownBody* body = nullptr;
    if (message < rendered.messages.size() && rendered.messages[message].body == i) {
      body = body_of(rendered.messages[message], known);
    }
    if (body != nullptr) {
      out.ids.insert(out.ids.end(), body->ids.begin(), body->ids.end());
      out.generated.resize(out.ids.size(), 1);
      // Within the body there are no places of their own.
      for (++i; i < rendered.messages[message].end; ++i) starts[i] = out.ids.size();
      continue;
    }
    append(segments[i], tokenizer, out.ids);
    out.generated.resize(out.ids.size(), segments[i].generated ? 1 : 0);
    ++i;
  }
  starts[segments.size()] = out.ids.size();
  for (const MessageSpan& span : rendered.messages) out.message_ends.push_back(starts[span.end]);
  out.history_end = starts[rendered.history_end];
  out.pending = out.ids.size() - starts[segments.size() - rendered.pending];
  return out;
}

std::vector<std::int32_t> encode_segments(const std::vector<Segment>& segments,
                                          const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids;
  for (const Segment& segment : segments) append(segment, tokenizer, ids);
  return ids;
}

bool has_chat_tokens(const Tokenizer& tokenizer) {
  return std::all_of(kNeeded.begin(), kNeeded.end(),
                     [&](Role role) { return tokenizer.id_of(role).has_value(); });
}

}  // namespace triax::chat
