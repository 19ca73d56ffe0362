#!/usr/bin/env python3
"""How time per prompt token and a sequence's memory grow with its length, held against the model's formula.

Runs `triax bench` on the small shape for prompts of 1k, 4k, 16k and 64k tokens, writes the figures as JSON and a
plot as SVG beside it. The formula: everything but MLA's attention costs the same for every token; MLA's attention
costs in proportion to the tokens before, so on average to half the length; a sequence holds its KDA states and
convolution tails, which are constant, and one row of the latent cache a token. Standard library only.

    bench/growth.py --out docs/images/growth.svg
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

import engines
from growth_plot import Line, Panel, Points, draw

LENGTHS = [1024, 4096, 16384, 65536]
PAGE_TOKENS = 64  # the latent cache grows by pages


def measure(triax, model, lengths, threads, repeats):
    """The JSON of `triax bench --profile` for prompts of these lengths."""
    names = ",".join(f"pp{n}" for n in lengths)
    command = [triax, "bench", "-m", model, "--only", names, "--repeats", repeats, "--profile", "--json",
               "--limits-mib", "0"] + (["--threads", threads] if threads else [])
    out = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def account(triax, model):
    """What a sequence holds by the configuration: constant bytes, and bytes a token."""
    out = subprocess.run([triax, "inspect", model, "--json"], check=True, capture_output=True, text=True).stdout
    sequence = json.loads(out)["sequence"]
    constant = sequence["kda_state_bytes"] + sequence["conv_bytes_bf16"]
    return constant, sequence["latent_bytes_per_token_bf16"]


def point(measured):
    """Microseconds per token: all, MLA's attention, the rest; from the run of the median rate."""
    profile = measured["profile"]
    families = {f["name"]: f["seconds"] for f in profile["families"]}
    all_us = 1e6 / measured["tokens_per_second"]
    share = families.get("mla_attention", 0) / profile["seconds"]
    return {"tokens": measured["tokens"], "us_per_token": all_us, "mla_attention_us": all_us * share,
            "rest_us": all_us * (1 - share), "state_bytes": measured["state_bytes"],
            "runs": [run["tokens_per_second"] for run in measured["runs"]]}


def fit(points):
    """The formula with the measured constants: `rest` microseconds a token, and a constant and a slope of MLA's
    attention by the mean number of tokens before, by least squares of the relative errors."""
    rest = math.exp(sum(math.log(p["rest_us"]) for p in points) / len(points))
    rows = [((1 / p["mla_attention_us"], p["tokens"] / 2 / p["mla_attention_us"])) for p in points]
    aa, ab, bb = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(r[i] for r in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    constant, slope = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    if constant < 0:  # neither can be: what noise made negative is zero
        constant, slope = 0, b / bb
    elif slope < 0:
        constant, slope = a / aa, 0
    return {"rest_us": rest, "mla_constant_us": constant, "mla_us_per_token_before": slope}


def formula(fitted, tokens):
    return {"rest": fitted["rest_us"],
            "mla": fitted["mla_constant_us"] + fitted["mla_us_per_token_before"] * tokens / 2}


def state_formula(constant, per_token, tokens):
    pages = -(-tokens // PAGE_TOKENS)
    return constant + per_token * PAGE_TOKENS * pages


def kilo(n):
    return f"{n // 1024}k" if n >= 1024 else str(n)


def size(n):
    return f"{n / 1e6:g} MB" if n >= 1e6 else f"{n / 1e3:g} kB"


def time_text(us):
    return f"{us / 1000:g} ms" if us >= 1000 else f"{us:g} µs"


def panels(points, fitted, constant, per_token):
    lengths = [p["tokens"] for p in points]
    curve = [2 ** (math.log2(lengths[0]) + i / 8 * math.log2(lengths[-1] / lengths[0])) for i in range(9)]
    by_formula = [formula(fitted, n) for n in curve]
    time = Panel("Time per prompt token", time_text, [
        Line("everything else: flat", 0, [(n, f["rest"]) for n, f in zip(curve, by_formula)]),
        Line("MLA attention: linear", 1, [(n, f["mla"]) for n, f in zip(curve, by_formula)]),
        Points(0, [(p["tokens"], p["rest_us"]) for p in points]),
        Points(1, [(p["tokens"], p["mla_attention_us"]) for p in points])])
    memory = Panel("Memory of one sequence", size, [
        Line("KDA state: flat", 0, [(n, constant) for n in curve]),
        Line("all: linear in the end", 1, [(n, constant + per_token * n) for n in curve]),
        Points(1, [(p["tokens"], p["state_bytes"]) for p in points])])
    return [time, memory]


def report(points, fitted, constant, per_token):
    print("| prompt | µs a token | MLA attention | formula | the rest | formula | state | formula |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    worst = 0.0
    for p in points:
        f = formula(fitted, p["tokens"])
        state = state_formula(constant, per_token, p["tokens"])
        worst = max(worst, abs(p["us_per_token"] / (f["mla"] + f["rest"]) - 1))
        print(f"| {kilo(p['tokens'])} | {p['us_per_token']:.0f} | {p['mla_attention_us']:.1f} | {f['mla']:.1f} | "
              f"{p['rest_us']:.0f} | {f['rest']:.0f} | {p['state_bytes']:,} | {state:,} |")
    print(f"\nTime is within {100 * worst:.0f} % of the formula at every length.")
    wrong = [p["tokens"] for p in points
             if p["state_bytes"] != state_formula(constant, per_token, p["tokens"])]
    print("Memory is the formula's to the byte." if not wrong else f"Memory differs at {wrong}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the SVG; figures go beside it as .json")
    parser.add_argument("--model", help="a folder made by `triax synth --config small` (default: made in --work)")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/triax-growth"))
    parser.add_argument("--triax", help="the binary (default: what ./triax builds)")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--from-json", type=pathlib.Path, help="draw and report figures of an earlier run")
    options = parser.parse_args()
    if options.from_json:
        record = json.loads(options.from_json.read_text())
    else:
        triax = engines.triax_binary(options.triax)
        model = pathlib.Path(options.model or options.work)
        if not (model / "config.json").exists():
            subprocess.run([triax, "synth", "--config", "small", "--out", model], check=True,
                           stdout=subprocess.DEVNULL)
        lengths = [int(n) for n in options.lengths.split(",")]
        if len(lengths) < 2:
            sys.exit("--lengths: two lengths at least, to see growth")
        result = measure(triax, model, lengths, options.threads, options.repeats)
        constant, per_token = account(triax, model)
        points = [point(m) for m in result["measurements"]]
        record = {"machine": engines.machine(), "triax": engines.triax_version(triax), "shape": "small",
                  "threads": result["threads"], "isa": result["isa"], "repeats": options.repeats,
                  "constant_bytes": constant, "bytes_per_token": per_token, "points": points,
                  "formula": fit(points)}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    arguments = (record["points"], record["formula"], record["constant_bytes"], record["bytes_per_token"])
    note = (f"small shape, {record['threads']} threads, {record['isa']}, {record['machine']['processor']}; "
            f"dots measured (median of {record['repeats']}), lines by the model's formula")
    options.out.write_text(draw(panels(*arguments), "tokens of the prompt", kilo, note))
    report(*arguments)


if __name__ == "__main__":
    main()
