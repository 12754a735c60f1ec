import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOfError } from './api.ts';
import { visible } from './format.ts';
import { Button } from './parts.tsx';

export interface Question {
  readonly title: string;
  readonly body: ComponentChildren;
  /** What the button that does it says. */
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** Does it; what it returns is shown to the reader. */
  readonly act: () => Promise<string>;
}

interface Notice {
  readonly text: string;
  readonly isError: boolean;
}

let showQuestion: (question: Question) => void = () => undefined;
let showNotice: (notice: Notice) => void = () => undefined;

/** Returns a handler that asks, and does it if the reader agrees. */
export const asks = (question: Question) => (): void => showQuestion(question);

type Perform = (act: () => Promise<string>) => Promise<void>;

/** Returns whether an action is on its way, so that its button takes no second press, and what starts one and reports its outcome. */
export function useAction(): readonly [isBusy: boolean, perform: Perform] {
  const [isBusy, setBusy] = useState(false);
  const perform: Perform = async (act) => {
    setBusy(true);
    try {
      notify(await act());
    } catch (error) {
      showNotice({ text: messageOfError(error), isError: true });
    } finally {
      setBusy(false);
    }
  };
  return [isBusy, perform];
}

export function notify(text: string): void {
  showNotice({ text, isError: false });
}

/** A modal dialog: the browser keeps the focus in it, and gives it back if the dialog is closed before it is removed. */
export function Modal(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} onClose={props.onClose} aria-labelledby="dialog-title">
      <h2 id="dialog-title">{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/** Closes the dialog that something is in. */
export function closeAround(element: Element): void {
  element.closest('dialog')?.close();
}

/** Where questions and notices appear. */
export function Dialogs(): JSX.Element {
  const [question, setQuestion] = useState<Question>();
  const [notices, setNotices] = useState<readonly Notice[]>([]);
  useEffect(() => {
    showQuestion = setQuestion;
    showNotice = (notice) => {
      setNotices((before) => [...before.slice(-2), notice]);
      setTimeout(
        () => setNotices((before) => before.filter((other) => other !== notice)),
        notice.isError ? 12_000 : 5_000,
      );
    };
  }, []);
  return (
    <>
      {question !== undefined && (
        <Confirm
          question={question}
          onClose={() => {
            // It may have been closed while it acted, and another one opened.
            setQuestion((shown) => (shown === question ? undefined : shown));
          }}
        />
      )}
      <div class="notices" role="status" aria-live="polite">
        {notices.map((notice, index) => (
          <p key={index} class={notice.isError ? 'notice bad' : 'notice'}>
            {visible(notice.text)}
          </p>
        ))}
      </div>
    </>
  );
}

function Confirm(props: { readonly question: Question; readonly onClose: () => void }): JSX.Element {
  const { question, onClose } = props;
  const [isBusy, perform] = useAction();
  return (
    <Modal title={question.title} onClose={onClose}>
      <div class="dialog-body">{question.body}</div>
      <div class="actions">
        <Button label="Keep as it is" onClick={({ currentTarget }) => closeAround(currentTarget)} />
        <Button
          label={question.verb}
          class={question.isDangerous === true ? 'danger' : 'primary'}
          isBusy={isBusy}
          onClick={({ currentTarget }) => void perform(question.act).then(() => closeAround(currentTarget))}
        />
      </div>
    </Modal>
  );
}
