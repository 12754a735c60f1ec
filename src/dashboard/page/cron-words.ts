import cronstrue from 'cronstrue';

/** `At 09:00, Monday through Friday`; undefined for what is not a cron expression. Loaded only where it is needed. */
export function cronWords(spec: string): string | undefined {
  const [, zone, expression = spec] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/.exec(spec) ?? [];
  try {
    const words = cronstrue.toString(expression, { use24HourTimeFormat: true });
    return zone === undefined ? words : `${words}, in ${zone}`;
  } catch {
    return undefined;
  }
}
