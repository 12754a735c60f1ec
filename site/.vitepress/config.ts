import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { transformerTwoslash } from '@shikijs/vitepress-twoslash';
import { defineConfig, type DefaultTheme } from 'vitepress';
import llms from 'vitepress-plugin-llms';
import { ICON } from '../../build-page.ts';

const page = (text: string, name: string): DefaultTheme.SidebarItem => ({ text, link: `/${name}` });

const SECTIONS: DefaultTheme.SidebarItem[] = [
  { text: 'Start', items: [page('Getting started', 'getting-started')] },
  {
    text: 'Timers',
    items: [
      page('Timeouts and deadlines', 'timer'),
      page('A cheaper setTimeout', 'timers'),
      page('Wait for a condition', 'purgatory'),
    ],
  },
  {
    text: 'Queues',
    items: [page('Deduplicate and retry', 'workqueue'), page('A queue on disk', 'diskqueue')],
  },
  {
    text: 'Background jobs',
    items: [
      page('Background jobs', 'tasks'),
      page('Jobs in a folder', 'tasks-folder'),
      page('Jobs over HTTP', 'tasks-http'),
      page('Limits and priorities', 'flow-control'),
      page('Jobs on Redis', 'redis'),
      page('More than one Redis', 'scaling'),
    ],
  },
  {
    text: 'In production',
    items: [
      page('Production', 'production'),
      page('Dashboard', 'dashboard'),
      page('Metrics', 'metrics'),
      page('Task command', 'tasks-command'),
      page('Disk queue command', 'diskqueue-command'),
      page('Testing', 'testing'),
    ],
  },
  { text: 'Recipes', items: [page('Frameworks, workers, tests', 'recipes')] },
  {
    text: 'Migrate',
    collapsed: true,
    items: [
      page('Overview', 'migrate'),
      page('From setTimeout', 'migrate-settimeout'),
      page('From p-queue', 'migrate-p-queue'),
      page('From BullMQ', 'migrate-bullmq'),
      page('From bee-queue', 'migrate-bee-queue'),
      page('From agenda', 'migrate-agenda'),
      page('From asynq (Go)', 'migrate-asynq'),
      page('From go-diskqueue', 'migrate-go-diskqueue'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page('Imports', 'imports'),
      page('Options', 'options'),
      page('Errors', 'errors'),
      page('Terms', 'terminology'),
      { text: 'API', link: '/api/index.html', target: '_self' },
      page('How it works', 'how-it-works'),
      page('Measurements of the timer', 'timer-measurements'),
    ],
  },
];

/** Shows the type of every name in a snippet. Compiling them all takes a minute or two: DOCS_TYPES=off leaves it out. */
const types = transformerTwoslash({
  explicitTrigger: false,
  filter: (language) => language === 'ts',
  twoslashOptions: {
    handbookOptions: { noErrors: true }, // the tests check them, with the packages of the frameworks
    compilerOptions: {
      target: 10, // ES2023
      module: 199, // NodeNext
      moduleResolution: 99,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      types: ['node'],
      strict: true,
      skipLibCheck: true,
    },
  },
});

/** The anchor of a heading, as GitHub makes it: a link to it works in both places. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The pages of docs/ as a site. A link that leads nowhere fails the build. */
export default defineConfig({
  title: 'escapement',
  description: 'Timers, queues and background jobs for Node.js',
  head: [['link', { rel: 'icon', href: ICON }]],
  srcDir: '../docs',
  srcExclude: ['api/**'],
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: false, // any server of files serves it
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: SECTIONS,
    socialLinks: [{ icon: 'github', link: 'https://github.com/escapement/escapement' }],
  },
  markdown: {
    anchor: { slugify: anchorOf },
    codeTransformers: process.env['DOCS_TYPES'] === 'off' ? [] : [types],
  },
  vite: { plugins: [llms()] },
  buildEnd: ({ outDir }) => {
    const root = join(import.meta.dirname, '../..');
    execFileSync('npm', ['run', 'docs:api', '--', '--out', join(outDir, 'api')], {
      cwd: root,
      stdio: 'inherit',
    });
    cpSync(join(root, 'docs/monitoring'), join(outDir, 'monitoring'), { recursive: true });
    execFileSync('npx', ['tsx', 'tools/wheel-page.ts', join(outDir, 'wheels.html')], { cwd: root });
  },
});
