import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { installGoProgram } from '../support/install-go-program.ts';
import { BothSides, type Answer, type Question } from './both-sides.ts';
import { readState, restoreSnapshot, takeSnapshot, type Snapshot } from './redis-state.ts';

const MODULE = 'github.com/hibiken/asynqmon';
const program = await installGoProgram(MODULE, `${MODULE}/cmd/asynqmon`, 'v0.7.2');

const get = (path: string): Question => ({ method: 'GET', path });
const post = (path: string, body?: unknown): Question => ({ method: 'POST', path, body });
const remove = (path: string): Question => ({ method: 'DELETE', path });
const shown = (question: Question): string => `${question.method} ${question.path}`;
const named = (questions: readonly Question[]): [string, Question][] =>
  questions.map((question) => [shown(question), question]);

const TASKS = '/queues/default';
const GROUP = `${TASKS}/groups/g/aggregating_tasks`;
const LISTS = ['pending', 'scheduled', 'retry', 'archived', 'completed', 'active'].map(
  (state) => `${TASKS}/${state}_tasks`,
);

describe.skipIf(program === undefined)('asynqmon and we on one Redis', () => {
  let both: BothSides;
  let full: Snapshot;
  beforeAll(async () => {
    both = await BothSides.start(program?.file ?? '');
    await both.fill();
    await both.announce();
    full = await takeSnapshot(both.redis);
  });
  afterAll(async () => {
    await both.stop();
    program?.remove();
  });

  describe('read alike', () => {
    const pages = ['', '?size=1', '?size=1&page=2', '?page=99', '?page=&size=', '?page=01&more=x'];
    const tasks = LISTS.flatMap((list) =>
      [1, 2].map((n) => `${TASKS}/tasks/${/(\w+)_tasks/.exec(list)?.[1] ?? ''}${n}`),
    );
    const questions = [
      ...['/queues', '/queues/default', '/queues/low', '/queues/empty', '/queue_stats', '/servers'],
      ...[`${TASKS}/groups`, '/queues/empty/groups', '/scheduler_entries', '/redis_info'],
      ...[...LISTS, GROUP, `${TASKS}/groups/none/aggregating_tasks`, '/queues/empty/pending_tasks'].flatMap(
        (list) => pages.map((page) => `${list}${page}`),
      ),
      ...[...tasks, `${TASKS}/tasks/aggregating1`, '/queues/low/tasks/only'],
      ...['a', 'b', 'none'].flatMap((entry) =>
        pages.map((page) => `/scheduler_entries/${entry}/enqueue_events${page}`),
      ),
    ];

    test.each(questions)('asynqmon and we answer alike: GET %s', async (path) => {
      const [theirs, ours] = await both.ask(get(path));
      expect(ours.status).toBe(theirs.status);
      expect(normalized(ours.json)).toEqual(normalized(theirs.json));
    });

    test('asynqmon and we find names with colons, and only we find a task with a slash', async () => {
      await both.add('a:run', { queue: 'x:y:z', group: 'g:h' });
      await both.add('a/b', { queue: 'x:y:z' });
      for (const path of ['', '/tasks/a:run', '/pending_tasks', '/groups', '/groups/g:h/aggregating_tasks']) {
        const [theirs, ours] = await both.ask(get(`/queues/x:y:z${path}`));
        expect(theirs.status).toBe(200);
        expect(normalized(ours.json)).toEqual(normalized(theirs.json));
      }
      const [theirs, ours] = await both.ask(get('/queues/x:y:z/tasks/a%2Fb'));
      expect(theirs.json).toBeUndefined();
      expect(ours.json).toMatchObject({ id: 'a/b' });
      await restoreSnapshot(both.redis, full);
    });

    test('asynqmon and we answer alike when Redis is empty', async () => {
      await both.redis.flushall();
      for (const path of ['/queues', '/queue_stats', '/servers', '/scheduler_entries']) {
        const [theirs, ours] = await both.ask(get(path));
        expect(ours).toEqual({ ...theirs, text: ours.text });
      }
      await restoreSnapshot(both.redis, full);
    });

    test.each([
      '',
      '?duration=600&endtime=1800000000',
      '?queues=a,b&duration=100000',
      '?duration=10000000&endtime=1800000000',
    ])(
      'asynqmon and we send the same queries to Prometheus, but for how a filter is written: /metrics%s',
      async (query) => {
        const asked = async (answer: Promise<Answer>): Promise<unknown> => {
          both.queries.length = 0;
          const { status, json } = await answer;
          expect(status).toBe(200);
          return { json, queries: both.queries.map(normalizedQuery).sort() };
        };
        const endless = query.includes('endtime')
          ? query
          : `${query === '' ? '?' : `${query}&`}endtime=1800000000`;
        const theirs = await asked(both.askThem(get(`/metrics${endless}`)));
        expect(await asked(both.askUs(get(`/metrics${endless}`)))).toEqual(theirs);
      },
    );
  });

  describe('change alike, to the byte', () => {
    const lists = [...LISTS.slice(0, 5), GROUP];
    const first = (list: string): string => `${/(\w+)_tasks$/.exec(list)?.[1] ?? ''}1`;
    const runnable = lists.filter((list) => !/pending|completed/.test(list));
    const archivable = lists.filter((list) => !/archived|completed/.test(list));
    const batch = (list: string, verb: string): Question =>
      post(`${list}:batch_${verb}`, { task_ids: [first(list), 'none'] });
    const questions = [
      ...[post('/queues/low:pause'), post('/queues/default:resume'), remove('/queues/empty')],
      ...lists.flatMap((list) => [
        remove(`${list}/${first(list)}`),
        remove(`${list}:delete_all`),
        batch(list, 'delete'),
      ]),
      ...runnable.flatMap((list) => [
        post(`${list}/${first(list)}:run`),
        post(`${list}:run_all`),
        batch(list, 'run'),
      ]),
      ...archivable.flatMap((list) => [
        post(`${list}/${first(list)}:archive`),
        post(`${list}:archive_all`),
        batch(list, 'archive'),
      ]),
      post(`${TASKS}/pending_tasks:batch_delete`, { task_ids: [] }),
      remove(`${TASKS}/groups/none/aggregating_tasks:delete_all`),
      post(`${TASKS}/groups/none/aggregating_tasks:run_all`),
    ];

    test.each(named(questions))('asynqmon and we change Redis alike: %s', async (_, question) => {
      await restoreSnapshot(both.redis, full);
      const theirs = await both.askThem(question);
      const stateOfTheirs = await readState(both.redis);
      await restoreSnapshot(both.redis, full);
      const ours = await both.askUs(question);
      expect({ status: ours.status, json: ours.json }).toEqual({ status: theirs.status, json: theirs.json });
      expect(await readState(both.redis)).toEqual(stateOfTheirs);
      await restoreSnapshot(both.redis, full);
    });

    test.each(
      named([
        post(`${TASKS}/active_tasks/active1:cancel`),
        post(`${TASKS}/active_tasks:cancel_all`),
        post(`${TASKS}/active_tasks:batch_cancel`, { task_ids: ['active2'] }),
      ]),
    )('%s: what the servers hear', async (_, question) => {
      const listener = both.redis.duplicate();
      await listener.subscribe('asynq:cancel');
      const heard = async (answer: Promise<Answer>): Promise<unknown> => {
        const messages: string[] = [];
        const take = (__: string, message: string): void => void messages.push(message);
        listener.on('message', take);
        const { status, json } = await answer;
        await listener.ping(); // what was published before is there
        listener.off('message', take);
        return { status, json, messages: messages.sort() };
      };
      const theirs = await heard(both.askThem(question));
      expect(await heard(both.askUs(question))).toEqual(theirs);
      listener.disconnect();
    });
  });

  describe('differ as docs/tasks-http.md lists', () => {
    test.each<[name: string, question: Question, theirs: number, ours: number]>([
      ['a page before the first', get(`${TASKS}/pending_tasks?page=0`), 200, 400],
      ['a negative page', get(`${TASKS}/pending_tasks?page=-1`), 200, 400],
      ['a page that is not a number', get(`${TASKS}/retry_tasks?page=x`), 200, 400],
      ['an empty page', get(`${TASKS}/archived_tasks?size=0`), 200, 400],
      ['a negative size', get(`${TASKS}/active_tasks?size=-1`), 200, 400],
      ['a long page', get(`${TASKS}/completed_tasks?size=1001`), 200, 400],
      ['events on no page', get('/scheduler_entries/a/enqueue_events?page=0'), 200, 400],
      ['an unknown queue', get('/queues/none'), 500, 404],
      ['the tasks of an unknown queue', get('/queues/none/pending_tasks'), 500, 404],
      ['the groups of an unknown queue', get('/queues/none/groups'), 500, 404],
      ['a task of an unknown queue', get('/queues/none/tasks/a'), 404, 404],
      ['an unknown task', get(`${TASKS}/tasks/none`), 404, 404],
      ['deleting an unknown queue', remove('/queues/none'), 404, 404],
      ['deleting a queue with tasks', remove(TASKS), 400, 400],
      ['pausing an unknown queue', post('/queues/none:pause'), 204, 404],
      ['pausing a paused queue', post(`${TASKS}:pause`), 500, 409],
      ['resuming a queue that is not paused', post('/queues/low:resume'), 500, 409],
      ['deleting an unknown task', remove(`${TASKS}/retry_tasks/none`), 500, 404],
      ['deleting an active task', remove(`${TASKS}/pending_tasks/active1`), 500, 409],
      ['running an unknown task', post(`${TASKS}/retry_tasks/none:run`), 500, 404],
      ['running a pending task', post(`${TASKS}/retry_tasks/pending1:run`), 500, 409],
      ['archiving an archived task', post(`${TASKS}/retry_tasks/archived1:archive`), 500, 409],
      ['running tasks of an unknown queue', post('/queues/none/retry_tasks:run_all'), 500, 404],
      ['cancelling an unknown task', post(`${TASKS}/active_tasks/none:cancel`), 204, 404],
      ['cancelling a pending task', post(`${TASKS}/active_tasks/pending1:cancel`), 204, 409],
      ['a batch without ids', post(`${TASKS}/retry_tasks:batch_run`, {}), 200, 400],
      ['a batch that is null', post(`${TASKS}/retry_tasks:batch_run`, 'null'), 200, 400],
      ['a batch with more behind it', post(`${TASKS}/retry_tasks:batch_run`, '{"task_ids":[]}x'), 200, 400],
      ['a batch in upper case', post(`${TASKS}/retry_tasks:batch_run`, { TASK_IDS: [] }), 200, 400],
      ['a batch that is not JSON', post(`${TASKS}/retry_tasks:batch_run`, '{'), 400, 400],
      [
        'a batch with an unknown field',
        post(`${TASKS}/retry_tasks:batch_run`, { task_ids: [], a: 1 }),
        400,
        400,
      ],
      ['a batch of numbers', post(`${TASKS}/retry_tasks:batch_run`, { task_ids: [1] }), 400, 400],
      ['an unknown method', { method: 'PUT', path: TASKS }, 405, 405],
      ['a method of another path', post('/queues'), 405, 405],
      ['HEAD', { method: 'HEAD', path: '/queues' }, 405, 200],
      ['an unknown path', get('/none'), 200, 404],
      ['charts of no time', get('/metrics?duration=0'), 200, 400],
      ['charts of a time that is not a number', get('/metrics?duration=x'), 400, 400],
    ])('asynqmon and we answer with different codes: %s', async (_, question, theirs, ours) => {
      const answers = await both.ask(question);
      expect(answers.map(({ status }) => status)).toEqual([theirs, ours]);
      await restoreSnapshot(both.redis, full);
    });

    test.each(
      named([remove('/queues/low/pending_tasks:delete_all'), post('/queues/low/pending_tasks:archive_all')]),
    )('only we remove the lock of a unique task: %s', async (_, question) => {
      const isLocked: boolean[] = [];
      for (const side of ['askThem', 'askUs'] as const) {
        await both.add('locked', { queue: 'low', uniqueTtlMs: 60_000 });
        await both[side](question);
        isLocked.push((await both.redis.keys('asynq:{low}:unique:*')).length === 1);
        await restoreSnapshot(both.redis, full);
      }
      expect(isLocked).toEqual([true, false]);
    });

    test('a pending task with a key, which asynqmon shows by its id, and neither lists, counts nor deletes', async () => {
      await both.add('keyed', { queue: 'keys', key: 'a' });
      await both.add('other', { queue: 'keys' });
      const [theirs, ours] = await both.ask(get('/queues/keys/pending_tasks'));
      expect(theirs.json).toMatchObject({ tasks: [{ id: 'other' }], stats: { pending: 1, size: 1 } });
      expect(ours.json).toMatchObject({ tasks: [{ id: 'keyed' }, { id: 'other' }], stats: { pending: 2 } });
      for (const answer of await both.ask(get('/queues/keys/tasks/keyed')))
        expect(answer.json).toMatchObject({ id: 'keyed', state: 'pending' });
      const removals = await both.ask(remove('/queues/keys/pending_tasks/keyed'));
      expect(removals.map(({ status }) => status)).toEqual([500, 204]);
      await restoreSnapshot(both.redis, full);
    });

    test('only we report an error for tasks of a batch that are not active', async () => {
      const [theirs, ours] = await both.ask(
        post(`${TASKS}/active_tasks:batch_cancel`, { task_ids: ['none'] }),
      );
      expect(theirs.json).toEqual({ canceled_ids: ['none'], error_ids: [] });
      expect(ours.json).toEqual({ canceled_ids: [], error_ids: ['none'] });
    });

    test.each<[name: string, payload: string | Uint8Array, theirs: string, ours: string]>([
      ['an empty payload', '', 'non-printable bytes', ''],
      ['white space', '  ', 'non-printable bytes', '  '],
      ['lines', '{\n\t"a": 1\r\n}', 'non-printable bytes', '{\n\t"a": 1\r\n}'],
      ['no text', Uint8Array.of(255), 'non-printable bytes', 'non-printable bytes'],
      ['an escape sequence', 'a\u001b[2J', 'non-printable bytes', 'non-printable bytes'],
      ['letters', 'äß漢😀', 'äß漢😀', 'äß漢😀'],
      ['mark-up', '<b>&\'"', '<b>&\'"', '<b>&\'"'],
      ['as much as is shown', '😀'.repeat(200), '😀'.repeat(200), '😀'.repeat(200)],
      ['more than is shown', '😀'.repeat(201), `${'😀'.repeat(200)}…`, `${'😀'.repeat(200)}…`],
    ])('how %s is shown', async (_, payload, theirs, ours) => {
      await both.add('odd', { queue: 'odd' }, payload);
      const answers = await both.ask(get('/queues/odd/tasks/odd'));
      expect(answers.map(({ json }) => (json as { payload: string }).payload)).toEqual([theirs, ours]);
      await restoreSnapshot(both.redis, full);
    });
  });
});

/** Differ from one moment to the next, or are an estimate. */
const VOLATILE = new Set([
  'timestamp',
  'latency_msec',
  'display_latency',
  'memory_usage_bytes',
  'ttl_seconds',
]);

/** What asynqmon does not have. */
const OURS = ['held', 'key', 'limits', 'runnable', 'runnable_msec'];

/** What Redis counts or measures. */
const STEADY_INFO = [
  'redis_version',
  'redis_mode',
  'os',
  'process_id',
  'run_id',
  'tcp_port',
  'role',
  'maxmemory_policy',
];

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** Lists of names have no order in asynqmon; times have no fractions there. */
function normalized(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => normalized(item));
    const isOrdered = !['queues', 'entries', 'groups'].includes(key);
    return isOrdered ? items : items.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  }
  if (typeof value === 'string' && TIME.test(value)) return value.slice(0, 'yyyy-mm-ddThh:mm:ss'.length);
  if (typeof value !== 'object' || value === null) return value;
  if (key === 'info')
    return Object.fromEntries(
      Object.entries(value).map(([name, text]) => [name, STEADY_INFO.includes(name) ? text : typeof text]),
    );
  return Object.fromEntries(Object.entries(value).flatMap(([name, one]) => field(name, one, value)));
}

function field(name: string, value: unknown, of: object): [string, unknown][] {
  if (OURS.includes(name)) return [];
  if (name === 'group' && 'state' in of) return []; // asynqmon leaves it out of a task, and has it in lists
  if (name === 'result' && value === '') return [[name, 'non-printable bytes']]; // the same as an empty payload
  if (name === 'raw_info') return [[name, String(value).split('\r\n').length]];
  if (name === 'next_process_at' && (of as { state?: string }).state === 'pending')
    return [[name, typeof value]]; // now
  return [[name, VOLATILE.has(name) ? typeof value : normalized(value, name)]];
}

/** The parts of a filter come in another order, and asynqmon writes a comma behind the last. */
function normalizedQuery(query: URLSearchParams): string {
  const text = (query.get('query') ?? '').replace(/\{(.*?)\}/g, (_, filter: string) => {
    const parts = filter.match(/\w+=~?"[^"]*"/g) ?? [];
    return `{${parts.sort().join(',')}}`;
  });
  return ['start', 'end', 'step'].map((name) => query.get(name)).join(' ') + ` ${text}`;
}
