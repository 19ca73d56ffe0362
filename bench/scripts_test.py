#!/usr/bin/env python3
"""The arithmetic of the benchmark scripts, and the conversation with an engine; nothing is measured."""
import pathlib
import sys
import unittest
import xml.dom.minidom

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ablation  # noqa: E402
import busy  # noqa: E402
import engines  # noqa: E402
import growth  # noqa: E402
from growth_plot import draw  # noqa: E402

# Answers like an engine; ends at "die" with an assertion's words.
FAKE = """
import json, sys
print(json.dumps({"name": "ready"}), flush=True)
for line in sys.stdin:
    name = line.strip()
    if name == "die":
        print("loading\\nGGML_ASSERT(x) failed\\nbacktrace", file=sys.stderr)
        sys.exit(3)
    print(json.dumps({"name": name, "error": "no"} if name == "bad" else {"name": name, "tokens": 1}), flush=True)
"""


class Engines(unittest.TestCase):
    def test_answers_faults_and_last_words(self):
        with engines.Engine("fake", [sys.executable, "-c", FAKE], timeout=60) as engine:
            self.assertEqual(engine.ask("pp5")["name"], "pp5")
            self.assertGreater(engine.first_token_seconds, 0)
            with self.assertRaisesRegex(engines.EngineFailed, "fake: no"):
                engine.ask("bad")
            self.assertEqual(engine.ask("pp6")["name"], "pp6")
            with self.assertRaisesRegex(engines.EngineFailed, "code 3: GGML_ASSERT"):
                engine.ask("die")

    def test_silence_is_a_fault(self):
        with self.assertRaisesRegex(engines.EngineFailed, "no answer"):
            engines.Engine("mute", [sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)

    def test_median(self):
        self.assertEqual(engines.median([5, 1, 3]), 3)
        self.assertEqual(engines.median([4, 1, 3, 2]), 2.5)


class Ablation(unittest.TestCase):
    def test_a_difference_counts_beyond_the_spread_of_the_seeds(self):
        difference, real = ablation.compare([1.0, 1.1], [1.3, 1.4])
        self.assertAlmostEqual(difference, 0.3)
        self.assertTrue(real)
        self.assertFalse(ablation.compare([1.0, 1.1], [1.1, 1.2])[1])

    def test_table_has_a_line_an_arm_and_says_none(self):
        run = lambda loss: {"losses": dict.fromkeys(ablation.HELD_OUT, loss), "loss": loss, "max_over_mean": 1.5,
                            "dead": 0.0}
        text = ablation.table({"reference": [run(1.0), run(1.1)], "adamw": [run(2.0), run(2.1)],
                               "sign": [run(1.0), run(1.1)]}, 1000, [1, 2])
        lines = text.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("| 2.000, 2.100 | +1.000 |", lines[3])
        self.assertIn("| none |", lines[4])
        self.assertEqual(len({line.count("|") for line in lines}), 1)

    def test_arms_differ_in_one_thing(self):
        texts = [ablation.config(pathlib.Path("d"), 1, 1000, shape, optimizer, None)
                 for _, _, shape, optimizer in ablation.ARMS]
        for text in texts[1:]:
            changed = [key for key in text if text[key] != texts[0][key]]
            self.assertEqual(len(changed), 1)


class Busy(unittest.TestCase):
    @staticmethod
    def run_of(rate, cores):
        return {"tokens_per_second": rate, "seconds": 2.0, "processor_seconds": 2.0 * cores}

    def test_in_proportion_within_the_slack(self):
        alone = [self.run_of(100, 2)]
        for rate, cores, good in ((50, 1, True), (43, 1, True), (42, 1, False), (75, 1.5, True), (50, 1.5, False)):
            verdict = busy.judge(alone, [self.run_of(rate, cores)])
            self.assertEqual(verdict["in_proportion"], good, (rate, cores))


class Growth(unittest.TestCase):
    @staticmethod
    def points(constant, slope):
        return [{"tokens": n, "us_per_token": 500, "rest_us": 400, "mla_attention_us": constant + slope * n / 2,
                 "state_bytes": growth.state_formula(1000, 3, n)} for n in growth.LENGTHS]

    def test_fit_finds_the_constants(self):
        fitted = growth.fit(self.points(20, 0.01))
        self.assertAlmostEqual(fitted["rest_us"], 400)
        self.assertAlmostEqual(fitted["mla_constant_us"], 20)
        self.assertAlmostEqual(fitted["mla_us_per_token_before"], 0.01)
        self.assertAlmostEqual(growth.formula(fitted, 1024)["mla"], 20 + 5.12)

    def test_fit_is_never_negative(self):
        self.assertEqual(growth.fit(self.points(-1, 0.01))["mla_constant_us"], 0)
        self.assertEqual(growth.fit(self.points(2000, -0.01))["mla_us_per_token_before"], 0)

    def test_state_grows_by_pages(self):
        self.assertEqual(growth.state_formula(1000, 3, 64), 1000 + 3 * 64)
        self.assertEqual(growth.state_formula(1000, 3, 65), 1000 + 3 * 128)

    def test_point_takes_the_share_of_the_profile(self):
        measured = {"tokens": 8, "tokens_per_second": 1000.0, "state_bytes": 1, "runs": [{"tokens_per_second": 1000.0}],
                    "profile": {"seconds": 2.0, "families": [{"name": "mla_attention", "seconds": 0.5}]}}
        self.assertAlmostEqual(growth.point(measured)["mla_attention_us"], 250)
        self.assertAlmostEqual(growth.point(measured)["rest_us"], 750)

    def test_plot_is_a_picture_with_every_point(self):
        points = self.points(20, 0.01)
        svg = draw(growth.panels(points, growth.fit(points), 1000, 3), "tokens", growth.kilo, "a note & more")
        document = xml.dom.minidom.parseString(svg)
        self.assertEqual(len(document.getElementsByTagName("circle")), 3 * len(points))
        self.assertIn("64k", svg)


if __name__ == "__main__":
    unittest.main()
