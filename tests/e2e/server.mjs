// A `triax serve` as a user starts it, on a free port of this machine.
import { spawn } from "node:child_process";

export class Server {
  static async start(binary, model, more = []) {
    const out = new Server();
    out.said = "";
    out.child = spawn(binary, ["serve", "-m", model, "--port", "0", "--memory", "512", "--context", "8192", "--log", "none", ...more],
      { stdio: ["ignore", "pipe", "pipe"] });
    out.ended = new Promise((done) => out.child.once("exit", done));
    out.child.stderr.on("data", (text) => { out.said += text; });
    out.base = await new Promise((done, fail) => {
      let line = "";
      out.child.stdout.on("data", (text) => {
        line += text;
        const found = /(http:\/\/[^/]+)\/v1\n/.exec(line);
        if (found) done(found[1]);
      });
      out.ended.then(() => fail(new Error(`the server did not start: ${out.said}`)));
    });
    return out;
  }

  stop() {
    this.child.kill("SIGTERM");
    return this.ended;
  }
}
