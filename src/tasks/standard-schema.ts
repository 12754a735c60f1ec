/**
 * A schema of any library that implements Standard Schema (https://standardschema.dev, version 1): zod, valibot, arktype and others.
 * It has only the part that this package uses, so no package is needed for the types.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** All properties of the standard. */
  readonly '~standard': StandardSchemaProps<Input, Output>;
}

/** See {@link StandardSchema}. */
export interface StandardSchemaProps<Input, Output> {
  /** Version of the standard. */
  readonly version: 1;
  /** Name of the library. */
  readonly vendor: string;
  /** Validates a value, and returns the value that the handler receives. */
  readonly validate: (value: unknown) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
  /** Types for the compiler; absent at run time. */
  readonly types?: StandardSchemaTypes<Input, Output> | undefined;
}

/** See {@link StandardSchema}. */
export interface StandardSchemaTypes<Input, Output> {
  /** Type of the value that is enqueued. */
  readonly input: Input;
  /** Type of the value that the handler receives. */
  readonly output: Output;
}

/** A valid value, or the issues of an invalid one. */
export type StandardSchemaResult<Output> = StandardSchemaSuccess<Output> | StandardSchemaFailure;

/** Result for a valid value. */
export interface StandardSchemaSuccess<Output> {
  /** The value that the handler receives. */
  readonly value: Output;
  /** Absent: the value is valid. */
  readonly issues?: undefined;
}

/** Result for an invalid value. */
export interface StandardSchemaFailure {
  /** At least one issue. */
  readonly issues: readonly StandardSchemaIssue[];
}

/** A reason why a value is invalid. */
export interface StandardSchemaIssue {
  /** Message for a person. */
  readonly message: string;
  /** Path to the invalid part of the value. */
  readonly path?: readonly (PropertyKey | StandardSchemaPathStep)[] | undefined;
}

/** A step into a value. */
export interface StandardSchemaPathStep {
  /** Name of the property, or index. */
  readonly key: PropertyKey;
}
