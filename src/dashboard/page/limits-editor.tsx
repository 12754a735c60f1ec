import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { QueueLimits } from '../../tasks/broker/broker-types.ts';
import { may, path, write } from './api.ts';
import { asks, useAction, type Question } from './dialog.tsx';
import { count, durationText } from './format.ts';
import { Facts } from './lists.tsx';
import { Button, Card } from './parts.tsx';

/** Of a queue, or of each key in it. */
type Limits = Omit<QueueLimits, 'perKey'>;

/** The limits in the fields of a fieldset, empty ones being no limit. The handler checks the values, and its message is shown. */
function limitsIn(data: FormData, name: string): Limits {
  const field = (id: string): string => data.get(`${name} ${id}`) as string;
  const [concurrency, tasks, burst] = [field('concurrency'), field('tasks'), field('burst')];
  const rate = {
    ...{ tasks: Number(tasks), perMs: Math.round(Number(field('perS')) * 1_000) },
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
  const form = useRef<HTMLFormElement>(null);
  // The queue is read every second: only a change of its limits replaces what was typed.
  useEffect(() => form.current?.reset(), [JSON.stringify(limits)]);
  const save = async (all: Limits, perKey: Limits): Promise<string> => {
    const body: QueueLimits = { ...all, ...(Object.keys(perKey).length > 0 && { perKey }) };
    const isEmpty = Object.keys(body).length === 0;
    await (isEmpty ? write('DELETE', limitsPath(queue)) : write('PUT', limitsPath(queue), body));
    onChanged();
    return isEmpty ? 'The queue has no limits now.' : 'The limits are in force.';
  };
  return (
    <Card title="Limits in force">
      <Facts
        list={[
          ['The queue', limitText(limits)],
          ['Each key', limitText(limits?.perKey)],
        ]}
      />
      {may('limits') && (
        <form
          ref={form}
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            if (isBusy) return;
            const data = new FormData(event.currentTarget);
            void perform(() => save(limitsIn(data, 'queue'), limitsIn(data, 'key')));
          }}
        >
          <Fields legend="The queue as a whole" name="queue" limits={limits} />
          <Fields legend="Each key" name="key" limits={limits?.perKey} />
          <div class="actions">
            <Button type="submit" label="Save limits" class="primary" isBusy={isBusy} />
            {limits !== undefined && (
              <Button
                label="Remove all limits"
                class="danger quiet"
                onClick={asks(removal(queue, onChanged))}
              />
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

function limitText({ concurrency, rate }: Limits = {}): string {
  const parts = [
    concurrency !== undefined && `at most ${count(concurrency)} at a time`,
    rate !== undefined && `${count(rate.tasks)} every ${durationText(rate.perMs)}`,
    rate?.burst !== undefined && `a burst of ${count(rate.burst)}`,
  ];
  return parts.filter((part) => part !== false).join(', ') || 'no limit';
}

function Fields(props: {
  readonly legend: string;
  readonly name: string;
  readonly limits: Limits | undefined;
}): JSX.Element {
  const { legend, name, limits: { concurrency, rate } = {} } = props;
  const field = (id: string, label: string, value: number | undefined, inputs = {}): JSX.Element => (
    <label>
      {label}
      <input
        {...{ type: 'number', min: '1', step: '1', placeholder: 'none', name: `${name} ${id}`, ...inputs }}
        defaultValue={String(value ?? '')}
      />
    </label>
  );
  return (
    <fieldset>
      <legend>{legend}</legend>
      {field('concurrency', 'Tasks at a time', concurrency)}
      {field('tasks', 'Tasks started', rate?.tasks)}
      {field('perS', 'every … seconds', (rate?.perMs ?? 1_000) / 1_000, { min: '0.001', step: 'any' })}
      {field('burst', 'Burst', rate?.burst)}
    </fieldset>
  );
}
