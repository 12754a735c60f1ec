import { connect } from 'node:net';

/** Long for a server that runs, on a busy machine too. One that does not run refuses the connection at once. */
const TIMEOUT_MS = 20_000;

/**
 * Asks a server of the loopback without a client: commands whose words have no spaces, and whose answers are one line each.
 *
 * @returns the answers as they come, so beginning with `+`, `-` or `:`.
 * @throws Error - it cannot be reached, or does not answer all of them.
 */
export function askRedis(port: number, commands: readonly string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1').setTimeout(TIMEOUT_MS).setEncoding('utf8');
    let received = '';
    socket.on('connect', () => {
      socket.write(commands.map((command) => `${command}\r\n`).join(''));
    });
    socket.on('data', (text) => {
      received += String(text);
      const answers = received.split('\r\n').slice(0, -1);
      if (answers.length < commands.length) return;
      resolve(answers);
      socket.destroy();
    });
    socket.on('timeout', () => {
      socket.destroy(new Error(`port ${port} has not answered in ${TIMEOUT_MS} ms`));
    });
    socket.on('error', reject);
    socket.on('close', () => {
      reject(new Error(`port ${port} has closed the connection after '${received}'`));
    });
  });
}
