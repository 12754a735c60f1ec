import { Option, type Command } from 'commander';
import { addOption, wholeNumber } from '../options.ts';

export const CONNECTION_HELP = `
Where the tasks are:
  redis://[user:password@]host:port[/db]     Redis; rediss:// for TLS. host:port alone means the same
  redis-sentinel://…, redis-cluster://a,b    the same, by its sentinels, or by nodes of its cluster
  http://host:port/path                      the HTTP API of a process (tasksHandler), at the path where it is mounted

--uri is first, then ESCAPEMENT_URI, then REDIS_URL; without any, redis://127.0.0.1:6379. --password is first, then the one in
the URI, then ESCAPEMENT_PASSWORD; --token, then ESCAPEMENT_TOKEN. Others can see what is typed: keep secrets in the
environment. These options, and --json, may stand before or after the words of a command.

--json prints one JSON document; see docs/tasks-command.md.

Exit codes: 0 done; 1 some of several could not be done; 2 wrong usage, or not done; 130 interrupted.`;

/** Commands take them too, so that they may stand at the end; there the help leaves them out. */
export function addConnectionOptions(command: Command, isShown: boolean): void {
  const options = [
    new Option('-u, --uri <uri>', 'where the tasks are'),
    new Option('-n, --db <n>', 'the database of Redis').argParser(wholeNumber(0)),
    new Option('-U, --username <name>', 'who is asking'),
    new Option('-p, --password <password>', 'their password'),
    new Option('--cluster', 'the URI is of a node of a Redis cluster'),
    new Option('--cluster_addrs <addrs>', 'nodes of a Redis cluster: host:port,host:port'),
    new Option('--tls', 'reach Redis by TLS'),
    new Option('--tls_server <name>', 'the name that the certificate must have'),
    new Option('--insecure', 'by TLS, take any certificate'),
    new Option('--token <token>', 'for the HTTP API: sent as Authorization: Bearer'),
    new Option(
      '--http_header <header>',
      "for the HTTP API: sent too; 'Name: value', may be repeated",
    ).argParser((line: string, before: readonly string[] | undefined) => [...(before ?? []), line]),
    new Option('--json', 'print JSON'),
  ];
  for (const option of options) {
    const dashed = option.flags.includes('_') ? [option.flags.replaceAll('_', '-')] : [];
    addOption(command, isShown ? option : option.hideHelp(), ...dashed);
  }
}
