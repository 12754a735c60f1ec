import type { JSX } from 'preact';
import type { TaskState } from '../../tasks/task-state.ts';

/** States of tasks, as the page names and draws them. */

export const STATE_LABELS: Readonly<Record<TaskState, string>> = {
  active: 'Active',
  pending: 'Pending',
  scheduled: 'Scheduled',
  retry: 'Retry',
  archived: 'Archived',
  completed: 'Completed',
  aggregating: 'Aggregating',
};

/** A shape for each state, so that none depends on its colour. */
const STATE_SHAPES: Readonly<Record<TaskState, string>> = {
  active: 'M3 1.5 10.5 6 3 10.5Z',
  pending: 'M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9Z',
  scheduled: 'M6 1a5 5 0 1 0 0 10a5 5 0 1 0 0-10ZM5.2 2.8h1.5v2.9l2 1.6-.9 1.2L5.2 6.4Z',
  retry: 'M6 1 11.2 10.5H.8Z',
  archived: 'M2.4 1 6 4.6 9.6 1 11 2.4 7.4 6 11 9.6 9.6 11 6 7.4 2.4 11 1 9.6 4.6 6 1 2.4Z',
  completed: 'M4.4 10.4.8 6.8l1.5-1.5 2.1 2.1 5.3-5.6 1.5 1.5Z',
  aggregating: 'M1 1.5h10v2.2H1zM1 4.9h10v2.2H1zM1 8.3h10v2.2H1z',
};

export const stateColour = (state: TaskState): { readonly color: string } => ({
  color: `var(--state-${state})`,
});

export function StateShape({ state }: { readonly state: TaskState }): JSX.Element {
  return (
    <svg
      class="shape"
      style={stateColour(state)}
      viewBox="0 0 12 12"
      width="10"
      height="10"
      aria-hidden="true"
    >
      <path d={STATE_SHAPES[state]} fill="currentColor" fill-rule="evenodd" />
    </svg>
  );
}

export function StateLabel({ state }: { readonly state: TaskState }): JSX.Element {
  return (
    <span class="state">
      <StateShape state={state} />
      {STATE_LABELS[state]}
    </span>
  );
}
