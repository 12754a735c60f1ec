import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem, Skeleton } from './parts.tsx';

type Component<P> = (props: P) => JSX.Element;

/** A component whose file is loaded when it is first shown. */
export function lazy<P>(load: () => Promise<Component<P>>): Component<P> {
  let known: Component<P> | undefined;
  return function Lazy(props) {
    const [Loaded, setLoaded] = useState<Component<P> | undefined>(() => known);
    const [hasFailed, setFailed] = useState(false);
    useEffect(() => {
      load().then(
        (loaded) => {
          known = loaded;
          setLoaded(() => loaded);
        },
        () => setFailed(true),
      );
    }, []);
    if (Loaded !== undefined) return <Loaded {...(props as P & JSX.IntrinsicAttributes)} />;
    if (!hasFailed) return <Skeleton lines={8} />;
    return <Problem message="A part of this page could not be loaded." retry={() => location.reload()} />;
  };
}
