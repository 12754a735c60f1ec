import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { TASK_STATES, type TaskState } from '../../tasks/task-state.ts';
import { FILTER_TEXTS, type SearchFilter } from '../dashboard-json.ts';
import { StateLabel } from './parts.tsx';
import { QueueOptions } from './queue-views.tsx';
import { go, to } from './route.ts';

const [, ...FIELDS] = FILTER_TEXTS;

/** What is searched for. Submitting it changes the address, and that starts the search. */
export function SearchForm({ filter }: { readonly filter: SearchFilter }): JSX.Element {
  const [draft, setDraft] = useState(filter);
  useEffect(() => {
    setDraft(filter);
  }, [JSON.stringify(filter)]);
  const set = (name: keyof SearchFilter, value: string | number | readonly string[] | undefined): void => {
    const rest = Object.fromEntries(Object.entries(draft).filter(([other]) => other !== name));
    const isSet = value !== undefined && value !== '' && !(typeof value === 'object' && value.length === 0);
    setDraft(isSet ? { ...rest, [name]: value } : rest);
  };
  const hasMore = [...FIELDS, 'from', 'to', 'queue'].some((name) => name in filter);
  return (
    <form
      class="card search-form"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        go(to(['search'], { ...draft }));
      }}
    >
      <div class="search-line">
        <input
          type="search"
          id="search"
          aria-label="Search in type, id, payload, error and result"
          placeholder="Type, id, payload, error or result"
          value={draft.text ?? ''}
          onInput={({ currentTarget }) => {
            set('text', currentTarget.value);
          }}
        />
        <button type="submit" class="primary">
          Search
        </button>
      </div>
      <StateChoice
        chosen={draft.state ?? []}
        onChange={(state) => {
          set('state', state);
        }}
      />
      <details open={hasMore}>
        <summary>More filters</summary>
        <div class="fields">
          {FIELDS.map((name) => (
            <label key={name}>
              {name === 'id' ? 'Id' : name.charAt(0).toUpperCase() + name.slice(1)}
              <input
                type="text"
                placeholder="contains"
                value={draft[name] ?? ''}
                onInput={({ currentTarget }) => {
                  set(name, currentTarget.value);
                }}
              />
            </label>
          ))}
          {(['from', 'to'] as const).map((name) => (
            <label key={name}>
              {name === 'from' ? 'After' : 'Before'}
              <input
                type="datetime-local"
                step="1"
                value={localInput(draft[name])}
                onInput={({ currentTarget }) => {
                  const ms = new Date(currentTarget.value).getTime();
                  set(name, Number.isNaN(ms) ? undefined : ms);
                }}
              />
            </label>
          ))}
          <label>
            Queues
            <select
              multiple
              size={4}
              onChange={({ currentTarget }) => {
                set(
                  'queue',
                  [...currentTarget.selectedOptions].map(({ value }) => value),
                );
              }}
            >
              <QueueOptions chosen={draft.queue ?? []} />
            </select>
          </label>
        </div>
      </details>
    </form>
  );
}

/** What the input needs: a local time without its zone. */
function localInput(atMs: number | undefined): string {
  if (atMs === undefined) return '';
  const date = new Date(atMs);
  if (Number.isNaN(date.getTime())) return '';
  return new Date(atMs - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function StateChoice(props: {
  readonly chosen: readonly TaskState[];
  readonly onChange: (chosen: TaskState[]) => void;
}): JSX.Element {
  const { chosen, onChange } = props;
  return (
    <fieldset class="chips">
      <legend>State</legend>
      {TASK_STATES.map((state) => (
        <label key={state} class="chip">
          <input
            type="checkbox"
            checked={chosen.includes(state)}
            onChange={({ currentTarget }) => {
              onChange(
                TASK_STATES.filter((other) =>
                  other === state ? currentTarget.checked : chosen.includes(other),
                ),
              );
            }}
          />
          <StateLabel state={state} />
        </label>
      ))}
    </fieldset>
  );
}
