import type { JobView } from '../service/job-view.ts';
import type { Burst, ReceivedImage, SentImage } from './demo-result.ts';
import type { JobsClient } from './jobs-client.ts';
import { burstOf, describeImage, WIDTHS, type Sample } from './sample-images.ts';

/** Sends a customer's images all at once, waits for their jobs, and fetches what they have made. */
export async function sendBurst(client: JobsClient, customer: string): Promise<Burst> {
  const samples = await burstOf(customer);
  return { customer, images: await Promise.all(samples.map((sample) => sendOne(client, customer, sample))) };
}

async function sendOne(client: JobsClient, customer: string, sample: Sample): Promise<SentImage> {
  const { name, bytes, width, height, isBroken } = sample;
  const id = await client.send(bytes, WIDTHS, customer);
  const job = await client.wait(id);
  return { name, width, height, isBroken, id, job, received: await fetchAll(client, job) };
}

function fetchAll(client: JobsClient, { sizes }: JobView): Promise<ReceivedImage[]> {
  return Promise.all(sizes.map(async ({ url }) => describeImage(await client.image(url))));
}
