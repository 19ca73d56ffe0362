// Runs named checks one after the other; the last line counts them, as ./test reads it.

// `only`: a part of the names of those to run. A check that hangs fails after `seconds`.
export async function runChecks(checks, only = "", seconds = 120) {
  let passed = 0, failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    if (!name.includes(only)) continue;
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`still not done after ${seconds} s`)), seconds * 1000);
    });
    try {
      await Promise.race([check(), late]);
      ++passed;
      console.log(`ok     ${name}`);
    } catch (error) {
      ++failed;
      console.log(`FAILED ${name}: ${error.stack ?? error}`);
    }
    clearTimeout(timer);
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
