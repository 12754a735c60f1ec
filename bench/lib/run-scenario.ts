/** One round of one contestant of a scenario: it measures itself, we add what the collector took meanwhile. */
import { CollectorWindow, type CollectorWatch } from './collector-watch.ts';
import { forceCollection } from './force-collection.ts';
import { COLLECTOR, type Measurement } from './measurement.ts';
import type { MetricDefinition, ScenarioCase, ScenarioOutcome } from './part.ts';

export function scenarioMetrics({ metrics }: ScenarioCase): MetricDefinition[] {
  return [...metrics, { name: COLLECTOR, unit: 'ms', isAside: true }];
}

export async function runScenario(
  open: (size: number) => Promise<ScenarioOutcome>,
  size: number,
  collector: CollectorWatch,
): Promise<Measurement> {
  forceCollection();
  const window = new CollectorWindow();
  const { values, problem } = await open(size);
  window.close();
  const { totalMs } = await collector.read(window);
  return { values: { ...values, [COLLECTOR]: totalMs }, problem };
}
