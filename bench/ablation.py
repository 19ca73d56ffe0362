#!/usr/bin/env python3
"""What the parts of the architecture and of its training are worth, at the default model's shape.

Trains short runs that differ in one thing, with several seeds each, on the data of `triax data`, and compares
their held-out losses. An arm's difference to the reference counts only where it is larger than the spread of
the seeds, of both taken together; otherwise it is reported as none. Runs are kept in --work and not done
again, so an interrupted comparison goes on. Standard library only.

    triax data --out models/nano-data --seed 1 --tokens 30000000
    bench/ablation.py --data models/nano-data --work /tmp/ablation --markdown docs/ablation.md
"""
import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys

import engines

LAYERS = 9
# (name, what is different, changes to the model's shape, changes to the optimizer's table)
ARMS = [
    ("reference", "KDA and MLA, AttnRes, Muon by head, quantile balancing, SiTU", {}, {}),
    ("mla_only", "MLA in every layer",
     {"linear_attn_config": {"kda_layers": [], "full_attn_layers": list(range(1, LAYERS + 1))}}, {}),
    ("residual", "ordinary residuals", {"attn_res_block_size": None}, {}),
    ("muon_whole", "Muon, matrices whole", {}, {"matrices": "muon_whole"}),
    ("adamw", "AdamW for matrices too", {}, {"matrices": "adamw"}),
    ("sign", "sign rule for the router's bias", {}, {"balance": "sign"}),
    ("swiglu", "SwiGLU", {"hidden_act": "silu"}, {}),
]
SOURCES = [("recall", 0.15, "all"), ("story_small", 0.35, "all"), ("story_medium", 0.15, "assistant"),
           ("arithmetic", 0.2, "assistant"), ("tools", 0.15, "assistant")]
HELD_OUT = ["recall", "story_small", "arithmetic", "tools"]


def config(data, seed, tokens, shape, optimizer, tokenizer):
    """A training's configuration. The tokenizer is made once, by the first run."""
    source = lambda part, name: str((data / part / f"{name}.jsonl").resolve())
    return {
        "seed": seed,
        "model": {"shape": "mini", **shape},
        "tokenizer": {"folder": str(tokenizer)} if tokenizer else {"vocabulary": 4096},
        "data": [{"name": name, "files": [source("train", name)], "weight": weight, "learn": learn}
                 for name, weight, learn in SOURCES],
        "held_out": [{"name": name, "files": [source("heldout", name)]} for name in HELD_OUT],
        "stage": [{"tokens": tokens, "context": 640, "batch_tokens": 4096}],
        "optimizer": {"peak_rate": 3e-3, **optimizer},
        "qat": {"from": 1.0},
        "evaluation": {"every_steps": 0, "tokens": 65536},
        "checkpoint": {"every_steps": 0, "every_minutes": 2, "keep": 1},
    }


def result(folder):
    """Held-out losses, their mean, and the loads of the last steps of a finished run; None of another."""
    metrics = folder / "metrics.jsonl"
    if not folder.with_suffix(".done").exists() or not metrics.exists():
        return None
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    evaluations = [line for line in lines if line["type"] == "evaluation"]
    steps = [line for line in lines if line["type"] == "step"]
    losses = {name: value["loss"] for name, value in evaluations[-1]["held_out"].items()}
    last = steps[-max(1, len(steps) // 10):]
    loads = [layer["max_over_mean"] for step in last for layer in step["load"]]
    dead = [layer["dead"] for step in last for layer in step["load"]]
    return {"losses": losses, "loss": sum(losses.values()) / len(losses), "max_over_mean": sum(loads) / len(loads),
            "dead": max(dead)}


def train(triax, folder, text):
    """Runs or goes on with one training; returns its result."""
    found = result(folder)
    if found:
        return found
    folder.parent.mkdir(parents=True, exist_ok=True)
    told = folder.with_suffix(".json")
    told.write_text(json.dumps(text, indent=1))
    if any((folder / "checkpoints").glob("*")):
        command = [triax, "train", "--resume", "--out", folder]
    else:
        shutil.rmtree(folder, ignore_errors=True)
        command = [triax, "train", told, "--out", folder]
    subprocess.run([str(word) for word in command], check=True, stdout=sys.stderr)
    folder.with_suffix(".done").touch()
    return result(folder)


def spread(values):
    """Largest minus smallest."""
    return max(values) - min(values)


def compare(reference, arm):
    """The difference of the means, and whether it is larger than the spread of the seeds of both."""
    difference = sum(arm) / len(arm) - sum(reference) / len(reference)
    return difference, abs(difference) > math.hypot(spread(reference), spread(arm))


def table(results, tokens, seeds):
    """Markdown: a line an arm. results[arm] is a list of result()."""
    base = [r["loss"] for r in results["reference"]]
    out = [f"| arm | what is different | held-out loss ({len(seeds)} seeds) | difference | " +
           " | ".join(name.replace("_", " ") for name in HELD_OUT) + " | max/mean load | dead experts |",
           "| --- | --- | --- | --- |" + " --- |" * (len(HELD_OUT) + 2)]
    for name, what, _, _ in ARMS:
        if name not in results:
            continue
        runs = results[name]
        losses = [r["loss"] for r in runs]
        if name == "reference":
            verdict = ""
        else:
            difference, real = compare(base, losses)
            verdict = f"{difference:+.3f}" if real else "none"
        cells = [sum(r["losses"][source] for r in runs) / len(runs) for source in HELD_OUT]
        out.append(f"| {name} | {what} | " + ", ".join(f"{x:.3f}" for x in losses) + f" | {verdict} | " +
                   " | ".join(f"{x:.3f}" for x in cells) +
                   f" | {sum(r['max_over_mean'] for r in runs) / len(runs):.2f} |"
                   f" {max(r['dead'] for r in runs):.0%} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triax", default=engines.ROOT / "triax", help="the program (default: ./triax)")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder that `triax data` wrote")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for the runs")
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of a run (default 1000000)")
    parser.add_argument("--seeds", type=int, default=2, help="runs an arm (default 2)")
    parser.add_argument("--arms", help="names, with commas (default: all)")
    parser.add_argument("--markdown", type=pathlib.Path, help="put the table between the marks of this file")
    args = parser.parse_args()
    wanted = args.arms.split(",") if args.arms else [arm[0] for arm in ARMS]
    unknown = set(wanted) - {arm[0] for arm in ARMS}
    if unknown:
        parser.error(f"no arm {', '.join(sorted(unknown))}; arms: {', '.join(arm[0] for arm in ARMS)}")
    seeds = list(range(1, args.seeds + 1))
    results, tokenizer = {}, None
    arms = [arm for arm in ARMS if arm[0] in wanted or arm[0] == "reference"]
    for number, (name, what, shape, optimizer) in enumerate(arms):
        for seed in seeds:
            folder = args.work / f"{name}-{seed}"
            print(f"arm {number + 1} of {len(arms)}, {name} ({what}), seed {seed}", file=sys.stderr, flush=True)
            results.setdefault(name, []).append(
                train(args.triax, folder, config(args.data, seed, args.tokens, shape, optimizer, tokenizer)))
            tokenizer = tokenizer or (args.work / "reference-1" / "tokenizer").resolve()
    text = table(results, args.tokens, seeds)
    print(text)
    if args.markdown:
        page = args.markdown.read_text()
        begin, end = "<!-- table: bench/ablation.py -->\n", "<!-- end of table -->"
        head, rest = page.split(begin)
        args.markdown.write_text(head + begin + text + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
