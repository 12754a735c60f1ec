import { MAINTENANCE_JOBS, type Broker, type LeasedTask } from 'escapement/tasks';

export interface RemoteBroker {
  readonly broker: Broker;
  /** Calls of `dequeue`. */
  readonly asked: number;
  /** Of those, how many have brought nothing. */
  readonly askedInVain: number;
}

/** A broker as if it were elsewhere: it has to be polled, and what a server asks for takes a round trip of its clock's time. */
export function remoteBroker(here: Broker, roundTripMs: number): RemoteBroker {
  const { clock } = here;
  const roundTrip = (): Promise<void> =>
    new Promise((resolve) => {
      clock.setTimeout(resolve, roundTripMs);
    });
  let asked = 0;
  let askedInVain = 0;
  const changed: Partial<Broker> = {
    maintenance: MAINTENANCE_JOBS,
    dequeue: async (queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> => {
      asked++;
      await roundTrip();
      const tasks = await here.dequeue(queue, limit, leaseMs);
      if (tasks.length === 0) askedInVain++;
      return tasks;
    },
    complete: async (task: LeasedTask): Promise<void> => {
      await roundTrip();
      await here.complete(task);
    },
  };
  const broker = new Proxy(here, {
    get: (target, name) => {
      if (Object.hasOwn(changed, name)) return Reflect.get(changed, name) as unknown;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return {
    broker,
    get asked() {
      return asked;
    },
    get askedInVain() {
      return askedInVain;
    },
  };
}
