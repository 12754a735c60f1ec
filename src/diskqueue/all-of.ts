/** Takes each of the steps, also if one before has failed. @throws the first error. */
export async function allOf(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) {
    await step().catch((error: unknown) => {
      errors.push(error);
    });
  }
  if (errors.length > 0) throw errors[0];
}
