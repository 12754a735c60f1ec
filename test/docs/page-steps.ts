/** One thing that a reader of a page does. */
export type Step =
  /** Saves a file: `Save this as \`NAME\`:` and a block. */
  | { readonly save: string; readonly source: string }
  /** Runs a block of `sh`, and compares what it prints with the block of `text` that follows, if one does. */
  | {
      readonly run: string;
      readonly prints: string | undefined;
      /** The text between the two says that Ctrl+C ends it. */
      readonly endless: boolean;
    };

/** A part of a page under one heading. */
export interface Section {
  readonly heading: string;
  readonly steps: Step[];
}

/** Reads the steps of a page: its commands, and the files that it asks the reader to save. */
export function readSteps(page: string): Section[] {
  return page
    .split(/^(?=#+ )/m)
    .map((text) => ({ heading: /^#+ (.+)/.exec(text)?.[1] ?? '', steps: stepsOf(text) }));
}

function stepsOf(section: string): Step[] {
  const steps: Step[] = [];
  let prose = '';
  let command: { block: string; at: number } | undefined;
  for (const [text, language, block = ''] of section.matchAll(/^```(\w+)\n(.*?)^```\n|^[^\n]*\n/gms)) {
    if (language === undefined) prose += text;
    else {
      const name = /save this as `([^`]+)`:\s*$/i.exec(prose)?.[1];
      if (name !== undefined) steps.push({ save: name, source: block });
      else if (language === 'sh') steps.push({ run: block, prints: undefined, endless: false });
      else if (language === 'text' && command !== undefined) {
        steps[command.at] = { run: command.block, prints: block, endless: prose.includes('Ctrl+C') };
      }
      command = language === 'sh' ? { block, at: steps.length - 1 } : undefined;
      prose = '';
    }
  }
  return steps;
}
