import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { TaskChange } from '../../tasks/task-state.ts';
import type { ChangeLine, SearchFilter } from '../dashboard-json.ts';
import { messageOfError, readLines } from './api.ts';
import { closeAround, Modal } from './dialog.tsx';
import { count, plural } from './format.ts';
import { Button, Problem, ScanProgress } from './parts.tsx';
import { CHANGE_LABELS, changeReport } from './task-table.tsx';

/** Asks, changes everything that matches, and shows how far it is. Closing the dialog stops it. */
export function BulkChange(props: {
  readonly change: TaskChange;
  readonly filter: SearchFilter;
  readonly matched: number;
  readonly summary: ComponentChildren;
  readonly onClose: (hasChanged: boolean) => void;
}): JSX.Element {
  const { change, filter, matched, summary, onClose } = props;
  const [line, setLine] = useState<ChangeLine>();
  const [failure, setFailure] = useState<string>();
  const [phase, setPhase] = useState<'asks' | 'runs' | 'ended'>('asks');
  const leaving = useRef(new AbortController()).current;
  useEffect(() => () => leaving.abort(), []);
  const run = async (): Promise<void> => {
    setPhase('runs');
    try {
      await readLines<ChangeLine>('search/change', setLine, leaving.signal, { filter, change });
    } catch (reason) {
      if (!leaving.signal.aborted) setFailure(messageOfError(reason));
    }
    setPhase('ended');
  };
  const label = CHANGE_LABELS[change];
  const error = failure ?? line?.error?.message;
  return (
    <Modal
      title={phase === 'asks' ? `${label}: all ${plural(matched, 'task')} that match?` : label}
      onClose={() => onClose(phase !== 'asks')}
    >
      <div class="dialog-body">
        {phase === 'asks' && (
          <>
            {summary}
            <p>
              {count(matched)} matched when the search ended. What matches when this runs is changed, on every
              page
              {change === 'delete' ? ', and cannot be brought back.' : '.'}
            </p>
          </>
        )}
        {line !== undefined && (
          <>
            <ScanProgress scanned={phase === 'ended' ? Infinity : line.scanned} total={line.total} />
            <p role="status">
              {changeReport(change, line.changed)}
              {line.refused > 0 &&
                ` ${plural(line.refused, 'task')} refused it: the state does not allow it.`}
              {phase === 'ended' && line.isDone !== true && ' Stopped before the end.'}
            </p>
          </>
        )}
        {phase === 'runs' && line === undefined && <p role="status">Starting.</p>}
        {error !== undefined && <Problem message={error} />}
      </div>
      <div class="actions">
        <Button
          label={{ asks: 'Keep as it is', runs: 'Stop', ended: 'Close' }[phase]}
          class={phase === 'ended' ? 'primary' : ''}
          onClick={({ currentTarget }) => {
            if (phase === 'runs') leaving.abort();
            else closeAround(currentTarget);
          }}
        />
        {phase === 'asks' && (
          <Button
            label={`${label} all`}
            class={change === 'delete' ? 'danger' : 'primary'}
            onClick={() => void run()}
          />
        )}
      </div>
    </Modal>
  );
}
