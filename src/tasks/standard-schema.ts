/**
 * What every schema library that follows Standard Schema (standardschema.dev, version 1) has: zod, valibot, arktype and
 * others. Only what is used here; so no package is needed for it.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Where the standard puts everything. */
  readonly '~standard': StandardSchemaProps<Input, Output>;
}

/** See {@link StandardSchema}. */
export interface StandardSchemaProps<Input, Output> {
  /** Of the standard. */
  readonly version: 1;
  /** The library. */
  readonly vendor: string;
  /** Checks a value, and makes of it what the handler gets. */
  readonly validate: (value: unknown) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
  /** Only for the compiler. */
  readonly types?: StandardSchemaTypes<Input, Output> | undefined;
}

/** See {@link StandardSchema}. */
export interface StandardSchemaTypes<Input, Output> {
  /** What is enqueued. */
  readonly input: Input;
  /** What the handler gets. */
  readonly output: Output;
}

/** A value, or what is wrong with it. */
export type StandardSchemaResult<Output> = StandardSchemaSuccess<Output> | StandardSchemaFailure;

/** A value that is right. */
export interface StandardSchemaSuccess<Output> {
  /** What was made of it. */
  readonly value: Output;
  /** None. */
  readonly issues?: undefined;
}

/** A value that is wrong. */
export interface StandardSchemaFailure {
  /** What is wrong with it, one at least. */
  readonly issues: readonly StandardSchemaIssue[];
}

/** One thing that is wrong with a value. */
export interface StandardSchemaIssue {
  /** For people. */
  readonly message: string;
  /** Where in the value. */
  readonly path?: readonly (PropertyKey | StandardSchemaPathStep)[] | undefined;
}

/** A step into a value. */
export interface StandardSchemaPathStep {
  /** The name of the property, or the index. */
  readonly key: PropertyKey;
}
