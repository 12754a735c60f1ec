import TwoslashFloatingVue from '@shikijs/vitepress-twoslash/client';
import '@shikijs/vitepress-twoslash/style.css';
import { useData, withBase, type Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { h, type VNode } from 'vue';

/** Pages that show the wheels of a timer that runs in the reader's browser. */
const PAGES_WITH_WHEELS = ['timer.md', 'how-it-works.md'];

/** The file is written at the end of a build: see config.ts. */
function wheels(relativePath: string): VNode | undefined {
  if (!import.meta.env.PROD || !PAGES_WITH_WHEELS.includes(relativePath)) return undefined;
  const style = 'width: 100%; height: 640px; border: 0; margin-top: 24px';
  return h('iframe', {
    src: withBase('/wheels.html'),
    title: 'The wheels of a live timer',
    loading: 'lazy',
    style,
  });
}

/** The default theme, the types that a reader sees when pointing at a name in a snippet, and a live timer. */
export default {
  extends: DefaultTheme,
  Layout: {
    setup() {
      const { page } = useData();
      return () => h(DefaultTheme.Layout, null, { 'doc-after': () => wheels(page.value.relativePath) });
    },
  },
  enhanceApp({ app }) {
    app.use(TwoslashFloatingVue);
  },
} satisfies Theme;
