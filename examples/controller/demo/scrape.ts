/** What Prometheus would see: values by the names of their series, without labels. */
export type Scrape = ReadonlyMap<string, number>;

export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  return parse(await response.text());
}

/** Of series that differ in their labels alone, the last. */
function parse(text: string): Scrape {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const [, name = '', value] = /^(\w+)(?:{.*})? (.+)$/.exec(line) ?? [];
      return [name, Number(value)];
    }),
  );
}
