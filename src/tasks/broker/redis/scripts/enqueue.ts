import { Script } from '../script.ts';
import { ADD_TASK } from './add-task.ts';

/**
 * Adds tasks to a queue, each for itself, in their order.
 *
 * KEYS, ARGV 1  see add-task.ts
 * ARGV  6 for each task: id, msg, score or nothing, group or nothing, lock or nothing, seconds that it holds
 *
 * Returns what became of each; see add-task.ts.
 */
export const ENQUEUE = new Script(`${ADD_TASK}
local outcomes = {}
for i = 2, #ARGV, 6 do
  outcomes[#outcomes + 1] = add(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
end
finish()
return outcomes
`);
