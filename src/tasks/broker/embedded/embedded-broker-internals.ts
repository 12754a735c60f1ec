import type { TaskStore } from './task-store.ts';

/** The door for the integrity checker, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.embedded-broker.internals');

/** What the integrity checker sees of an embedded broker. */
export interface EmbeddedBrokerInternals {
  /** Undefined once it is closed. */
  readonly store: TaskStore | undefined;
}
