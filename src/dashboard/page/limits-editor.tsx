import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { QueueLimits } from '../../tasks/broker/broker-types.ts';
import { may, path, write } from './api.ts';
import { asks, useAction, type Question } from './dialog.tsx';
import { count, duration } from './format.ts';
import { Card, Fact } from './parts.tsx';

/** Of a queue, or of each key in it. */
type Limits = Omit<QueueLimits, 'perKey'>;

/** The fields of the form, as they are typed; empty means no limit. */
interface Draft {
  readonly concurrency: string;
  readonly tasks: string;
  readonly perS: string;
  readonly burst: string;
}

function draftOf({ concurrency, rate }: Limits = {}): Draft {
  return {
    concurrency: `${concurrency ?? ''}`,
    tasks: `${rate?.tasks ?? ''}`,
    perS: `${(rate?.perMs ?? 1_000) / 1_000}`,
    burst: `${rate?.burst ?? ''}`,
  };
}

/** The handler checks the values, and its message is shown. */
function limitsOf(draft: Draft): Limits {
  const { concurrency, tasks, perS, burst } = draft;
  const rate = {
    ...{ tasks: Number(tasks), perMs: Math.round(Number(perS) * 1_000) },
    ...(burst === '' ? {} : { burst: Number(burst) }),
  };
  return {
    ...(concurrency === '' ? {} : { concurrency: Number(concurrency) }),
    ...(tasks === '' ? {} : { rate }),
  };
}

/** The limits of a queue, and of each key in it; a form for sessions that may change them. */
export function LimitsEditor(props: {
  readonly queue: string;
  readonly limits: QueueLimits | undefined;
  readonly onChanged: () => void;
}): JSX.Element {
  const { queue, limits, onChanged } = props;
  const [isBusy, perform] = useAction();
  const [all, setAll] = useState(draftOf);
  const [perKey, setPerKey] = useState(draftOf);
  // The queue is read every second: only a change of its limits replaces what was typed.
  const stored = JSON.stringify(limits);
  useEffect(() => {
    setAll(draftOf(limits));
    setPerKey(draftOf(limits?.perKey));
  }, [stored]);
  const save = async (): Promise<string> => {
    const keyLimits = limitsOf(perKey);
    const hasKeyLimits = Object.keys(keyLimits).length > 0;
    const body: QueueLimits = { ...limitsOf(all), ...(hasKeyLimits ? { perKey: keyLimits } : {}) };
    const isEmpty = Object.keys(body).length === 0;
    await (isEmpty ? write('DELETE', limitsPath(queue)) : write('PUT', limitsPath(queue), body));
    onChanged();
    return isEmpty ? 'The queue has no limits now.' : 'The limits are in force.';
  };
  return (
    <Card title="Limits in force">
      <dl class="facts">
        <Fact term="The queue">{limitText(limits)}</Fact>
        <Fact term="Each key">{limitText(limits?.perKey)}</Fact>
      </dl>
      {may('limits') && (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void perform(save);
          }}
        >
          <Fields legend="The queue as a whole" draft={all} onChange={setAll} />
          <Fields legend="Each key" draft={perKey} onChange={setPerKey} />
          <div class="actions">
            <button type="submit" class="primary" disabled={isBusy}>
              Save limits
            </button>
            {limits !== undefined && (
              <button type="button" class="danger quiet" onClick={asks(removal(queue, onChanged))}>
                Remove all limits
              </button>
            )}
          </div>
        </form>
      )}
    </Card>
  );
}

const limitsPath = (queue: string): string => path('queues', queue, 'limits');

function removal(queue: string, onChanged: () => void): Question {
  return {
    title: 'Remove all limits of this queue?',
    body: <p>Tasks that a limit holds back start as soon as a server has capacity.</p>,
    verb: 'Remove limits',
    isDangerous: true,
    act: async () => {
      await write('DELETE', limitsPath(queue));
      onChanged();
      return 'The queue has no limits now.';
    },
  };
}

function limitText(limits: Limits | undefined): string {
  const rate = limits?.rate;
  const parts = [
    limits?.concurrency === undefined ? '' : `at most ${count(limits.concurrency)} at a time`,
    rate === undefined ? '' : `${count(rate.tasks)} every ${duration(rate.perMs)}`,
    rate?.burst === undefined ? '' : `a burst of ${count(rate.burst)}`,
  ];
  return parts.filter((part) => part !== '').join(', ') || 'no limit';
}

function Fields(props: {
  readonly legend: string;
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
}): JSX.Element {
  const { legend, draft, onChange } = props;
  const field = (name: keyof Draft, label: string, step = '1'): JSX.Element => (
    <label>
      {label}
      <input
        type="number"
        min={name === 'perS' ? '0.001' : '1'}
        step={step}
        value={draft[name]}
        placeholder={name === 'perS' ? '' : 'none'}
        onInput={({ currentTarget }) => {
          onChange({ ...draft, [name]: currentTarget.value });
        }}
      />
    </label>
  );
  return (
    <fieldset>
      <legend>{legend}</legend>
      {field('concurrency', 'Tasks at a time')}
      {field('tasks', 'Tasks started')}
      {field('perS', 'every … seconds', 'any')}
      {field('burst', 'Burst')}
    </fieldset>
  );
}
