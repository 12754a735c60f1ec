/** The program that `inChild` runs: `child.ts MODULE FUNCTION VALUES`. It prints the result of the function as JSON. */
const [module = '', name = '', values = ''] = process.argv.slice(2);
const functions = (await import(module)) as Record<string, (...values: unknown[]) => unknown>;
const result = await functions[name]?.(...(JSON.parse(values) as unknown[]));
process.stdout.write(JSON.stringify(result ?? null), () => {
  process.exit(0); // a million timers may still be pending
});
