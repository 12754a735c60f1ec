import { Option, type Command } from 'commander';
import { addOption, wholeNumber } from '../options.ts';

export const CONNECTION_HELP = `
Where the tasks are:
  redis://[user:password@]host:port[/db]   Redis; rediss:// for TLS. host:port
                                           alone means the same
  redis-sentinel://…                       the same, by its sentinels
  redis-cluster://a,b                      the same, by nodes of its cluster
  http://host:port/path                    the HTTP API of a process
                                           (tasksHandler), where it is mounted

--uri is first, then ESCAPEMENT_URI, then REDIS_URL; without any,
redis://127.0.0.1:6379. --password is first, then the one in the URI, then
ESCAPEMENT_PASSWORD; --token, then ESCAPEMENT_TOKEN. Others can see what is
typed: keep secrets in the environment. These options, and --json, may stand
before or after the words of a command.

--json prints one JSON document; see docs/tasks-command.md.

Exit codes: 0 done; 1 some of several could not be done, or there is nothing to
cancel; 2 wrong usage, or not done; 130 interrupted.`;

const HEADING = 'Connection (see: escapement tasks --help):';

/** `escapement tasks` takes them and so does each of its commands: they may stand anywhere. */
export function addConnectionOptions(command: Command): void {
  const options = [
    new Option('-u, --uri <uri>', 'where the tasks are'),
    new Option('-n, --db <n>', 'the database of Redis').argParser(wholeNumber(0)),
    new Option('-U, --username <name>', 'user name'),
    new Option('-p, --password <password>', 'password of the user'),
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
  ];
  command.option('--json', 'print JSON');
  for (const option of options) {
    const dashed = option.flags.includes('_') ? [option.flags.replaceAll('_', '-')] : [];
    addOption(command, option.helpGroup(HEADING), ...dashed);
  }
}
