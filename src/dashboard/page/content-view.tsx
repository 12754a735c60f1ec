import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { ContentJson } from '../dashboard-json.ts';
import { notify } from './dialog.tsx';
import { bytes, manyLines, oneLine } from './format.ts';
import { bytesOfBase64, hexRows, prettyTokens, type Token } from './json-text.ts';
import { Button, Tag } from './parts.tsx';

/** More tokens than that are not coloured: each is an element. */
const MAX_COLOURED = 5_000;
/** Bytes that are drawn as hexadecimal. */
const MAX_HEX = 64 * 1024;

/** Payload or result: JSON token by token, other text as it is, other bytes as hexadecimal. Always text nodes. */
export function ContentView(props: { readonly content: ContentJson; readonly name: string }): JSX.Element {
  const { content, name } = props;
  const { text, base64 } = content;
  const tokens = useMemo(() => (text === undefined ? undefined : prettyTokens(text)), [text]);
  const [isPicked, pickHex] = useState(false);
  const isHex = isPicked || text === undefined;
  const size = content.bytes ?? text?.length ?? 0;
  if (size === 0) return <p class="faint pad">Empty</p>;
  return (
    <>
      <div class="content-head">
        <Tag>{text === undefined ? 'binary' : tokens === undefined ? 'text' : 'JSON'}</Tag>
        {content.bytes !== undefined && <span class="faint">{bytes(content.bytes)}</span>}
        {content.isCut && <Tag tone="warn">only the beginning is shown</Tag>}
        <span class="spring" />
        {text !== undefined && (
          <Button label="Hex" class="small" aria-pressed={isPicked} onClick={() => pickHex(!isPicked)} />
        )}
        <CopyButton text={text ?? base64 ?? ''} name={text === undefined ? `${name} as base64` : name} />
      </div>
      {/* Focusable, so that the keyboard can scroll it. */}
      <pre tabIndex={0} aria-label={name} class={isHex ? 'hex' : tokens === undefined ? '' : 'json'}>
        {isHex ? <Hex content={content} /> : tokens ? <Tokens tokens={tokens} /> : manyLines(text)}
      </pre>
    </>
  );
}

function Tokens({ tokens }: { readonly tokens: readonly Token[] }): JSX.Element {
  if (tokens.length > MAX_COLOURED) return <>{tokens.map(({ text }) => text).join('')}</>;
  return (
    <>
      {tokens.map(({ kind, text }, index) =>
        kind === 'plain' ? (
          text
        ) : (
          <bdi key={index} class={`token-${kind}`}>
            {text}
          </bdi>
        ),
      )}
    </>
  );
}

function Hex({ content }: { readonly content: ContentJson }): JSX.Element {
  const all =
    content.base64 === undefined ? new TextEncoder().encode(content.text) : bytesOfBase64(content.base64);
  const rest = all.length - MAX_HEX;
  return (
    <>
      {hexRows(all.subarray(0, MAX_HEX))}
      {rest > 0 && `\n… ${rest} more bytes`}
    </>
  );
}

export function CopyButton({ text, name }: { readonly text: string; readonly name: string }): JSX.Element {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      notify(`Copied ${name}.`);
    } catch {
      notify('This browser refuses to copy: it allows that for HTTPS and localhost only.');
    }
  };
  return <Button label="Copy" class="small" aria-label={`Copy ${name}`} onClick={() => void copy()} />;
}

/** The beginning of a content on one line, in a list. */
export function ContentLine({ content }: { readonly content: ContentJson }): JSX.Element {
  if (content.bytes === 0) return <span class="faint">empty</span>;
  if (content.text === undefined) {
    return (
      <span class="faint">{content.bytes === undefined ? 'binary' : `${bytes(content.bytes)}, binary`}</span>
    );
  }
  return <bdi class="mono line">{oneLine(content.text, 200)}</bdi>;
}
