/**
 * What every schema library that follows Standard Schema (standardschema.dev, version 1) has: zod, valibot, arktype and
 * others. Only what is used here; so no package is needed for it.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Where the standard has its own. */
  readonly '~standard': {
    /** Of the standard. */
    readonly version: 1;
    /** The name of the library. */
    readonly vendor: string;
    /** Takes a value apart, and says what is wrong with it. */
    readonly validate: (
      value: unknown,
    ) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
    /** Only for the compiler. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** A value, or what is wrong with it. */
export type StandardSchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardSchemaIssue[] };

/** One thing that is wrong with a value. */
export interface StandardSchemaIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where it is. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
