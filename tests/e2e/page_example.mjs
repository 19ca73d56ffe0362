// A conversation written by hand, to see how the page shows what models write.
export function conversation() {
  const stats = { prompt: 412, cached: 0, completion: 93, reasoning: 41, first: 0.38, seconds: 2.61 };
  return {
    id: "x", title: "How far is the Moon?", updated: 1, messages: [
      { id: "a", role: "user", text: "How far is the Moon, and how long does light take?" },
      { id: "b", role: "assistant", reasoning: "The distance can be looked up; light time is distance over c.", thought: 1.4,
        text: "", finish: "tool_calls", stats,
        calls: [{ id: "call_1", name: "distance", args: "{\"body\": \"Moon\", \"unit\": \"km\"}", result: "384400" }] },
      { id: "c", role: "assistant", reasoning: "384400 / 299792.458 = 1.282 s.", thought: 0.8, finish: "stop", calls: [],
        stats: { prompt: 531, cached: 505, completion: 128, reasoning: 22, first: 0.09, seconds: 3.4 },
        text: `On average the Moon is **384,400 km** away, so its light takes about \`1.28 s\` to reach us
([details](https://example.org/)).

| | distance | light |
|---|---:|---:|
| perigee | 363,300 km | 1.21 s |
| mean | 384,400 km | 1.28 s |
| apogee | 405,500 km | 1.35 s |

\`\`\`python
def light_seconds(km: float) -> float:
    return km / 299_792.458
\`\`\`` },
    ],
  };
}
