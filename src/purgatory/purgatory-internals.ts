import type { OperationHome } from './delayed-operation.ts';
import type { Watchers } from './watchers.ts';

/** The door for the integrity checker, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.purgatory.internals');

/** What the integrity checker sees of a purgatory. */
export interface PurgatoryInternals {
  readonly watchers: Watchers;
  /** What its operations call their home. */
  readonly home: OperationHome;
}
