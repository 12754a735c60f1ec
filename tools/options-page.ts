/** `npm run docs:options` writes docs/options.md: the options of every export, from their types, docstrings and tables. */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '..');
const PAGE = join(ROOT, 'docs/options.md');

/** The sources behind each import path, in the order of the page. */
const ENTRIES = Object.entries(importPaths()).map(
  ([importPath, [source = '']]) => [importPath, source] as const,
);

function importPaths(): Record<string, string[]> {
  const text = readFileSync(join(ROOT, 'tsconfig.json'), 'utf8');
  return (JSON.parse(text) as { compilerOptions: { paths: Record<string, string[]> } }).compilerOptions.paths;
}

/** Types of options whose names do not end so. */
const OTHER_OPTIONS = ['EnqueueEntry', 'FlakyRates', 'PeriodicTaskConfig', 'QueueLimits', 'Rate'];
/** What `Error` takes, what only brokers take, and types whose options are all in the table of another type. */
const LEFT_OUT = [
  ...['EscapementErrorOptions', 'LeaseHolderOptions', 'ClientOptions'],
  ...['LeaseThreadOptions', 'RedisClientOptions', 'RedisConnectionOptions', 'RedisConnectionSettings'],
  'RedisUrlOptions',
];

const HEADER = `# Options

Every option that a constructor or a function of the package takes, by import path. \`npm run docs:options\` writes this page from the sources.
Options are checked when they are passed: a wrong value or an unknown name is a \`TypeError\` or a \`RangeError\`
([argument errors](errors.md)). \`undefined\` means the default. 8.64e15 ms after 1970 is the last date of JavaScript.
`;

const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  allowImportingTsExtensions: true,
  noEmit: true,
  strict: true,
  types: [],
};

/** Other packages are not loaded: it takes seconds, and the page has the names of their types as they are written. */
const host: ts.CompilerHost = {
  ...ts.createCompilerHost(compilerOptions),
  resolveModuleNameLiterals: (literals, importer) =>
    literals.map(({ text }) => ({
      resolvedModule: text.startsWith('.')
        ? { resolvedFileName: join(dirname(importer), text), extension: ts.Extension.Ts }
        : undefined,
    })),
};

const program = ts.createProgram(
  ENTRIES.map(([, source]) => join(ROOT, source)),
  compilerOptions,
  host,
);
const checker = program.getTypeChecker();

/** Returns the text of the page, with tables that are not aligned. Takes some seconds. */
export function optionsPage(): string {
  const rules = rulesOfTables();
  const described = new Set<ts.Symbol>();
  const all = ENTRIES.flatMap(([, source]) => exportsOf(source));
  const sections = ENTRIES.map(([importPath, source]) => {
    const own = exportsOf(source).filter((symbol) => hasOptions(symbol.name) && !described.has(symbol));
    own.forEach((symbol) => described.add(symbol));
    return sectionOf(importPath, own, all, rules);
  });
  return [HEADER, ...sections.filter((section) => section !== '')].join('\n');
}

function sectionOf(importPath: string, own: ts.Symbol[], all: readonly ts.Symbol[], rules: Rules): string {
  const parts = own
    .sort((a, b) => a.name.localeCompare(b.name, 'en'))
    .map((symbol) => describe(symbol, takersOf(symbol, all), rules));
  return parts.length === 0 ? '' : [`## ${importPath}`, ...parts].join('\n\n') + '\n';
}

function exportsOf(source: string): ts.Symbol[] {
  const file = program.getSourceFile(join(ROOT, source));
  const module = file && checker.getSymbolAtLocation(file);
  if (module === undefined) throw new Error(`${source} exports nothing`);
  return checker
    .getExportsOfModule(module)
    .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol));
}

function hasOptions(name: string): boolean {
  return (/(Options|Settings)$/.test(name) || OTHER_OPTIONS.includes(name)) && !LEFT_OUT.includes(name);
}

function describe(symbol: ts.Symbol, takers: readonly string[], rules: Rules): string {
  const all = propertiesOf(symbol);
  const isElsewhere = (name: string): boolean =>
    name !== symbol.name && name !== 'SignalOptions' && hasOptions(name); // which is one row: shorter than a link
  const inherited = new Set(all.map(ownerOfProperty).filter(isElsewhere));
  const properties = all.filter((property) => !inherited.has(ownerOfProperty(property)));
  const alternatives = alternativesOf(symbol).join(' or ');
  const rows = properties.map((property) => {
    const required = alternatives.includes(`\`${property.name}\``)
      ? `${alternatives} is required`
      : 'required';
    return rowOf(symbol.name, property, rules, required);
  });
  const intro = takers.length > 0 ? `Taken by ${takers.join(', ')}.` : firstSentence(symbol);
  const others = [...inherited].map((name) => `[${name}](#${name.toLowerCase()})`).join(' and ');
  return [
    `### ${symbol.name}`,
    others === '' ? intro : `${intro} These, and all of ${others}:`,
    ['| option | type | default | rule | meaning |', '| --- | --- | --- | --- | --- |', ...rows].join('\n'),
  ].join('\n\n');
}

/** The interface that declares an option. */
function ownerOfProperty(property: ts.Symbol): string {
  return (declarationOf(property).parent as ts.InterfaceDeclaration).name.text;
}

/** The properties of an interface, or those of all members of a union. */
function propertiesOf(symbol: ts.Symbol): ts.Symbol[] {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  const properties = new Map<string, ts.Symbol>();
  for (const member of type.isUnion() ? type.types : [type]) {
    for (const property of checker.getPropertiesOfType(member)) {
      if (property.declarations !== undefined) properties.set(property.name, originOf(property));
    }
  }
  return [...properties.values()];
}

/** The options of a union that some of its members require and others lack. */
function alternativesOf(symbol: ts.Symbol): string[] {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  if (!type.isUnion()) return [];
  const inAll = new Set(checker.getPropertiesOfType(type).map(({ name }) => name));
  return propertiesOf(symbol)
    .filter((property) => !inAll.has(property.name) && declarationOf(property).questionToken === undefined)
    .map(({ name }) => `\`${name}\``);
}

/** An option that a mapped or intersected type has copied has the docstring of its declaration. */
function originOf(property: ts.Symbol): ts.Symbol {
  const declaration = declarationOf(property);
  return checker.getSymbolAtLocation(declaration.name) ?? property;
}

function declarationOf(property: ts.Symbol): ts.PropertySignature {
  const declaration = property.declarations?.[0];
  if (declaration === undefined || !ts.isPropertySignature(declaration))
    throw new Error(`${property.name} is not declared in an interface, or is a method there`);
  return declaration;
}

function rowOf(owner: string, property: ts.Symbol, rules: Rules, required: string): string {
  const declaration = declarationOf(property);
  const meaning = textOf(property);
  if (meaning === '') throw new Error(`${owner}.${property.name} has no docstring`);
  const declared = tagOf(property, 'default');
  const rule = rules.get(`${ownerOfProperty(property)}.${property.name}`);
  if (/^(Date \| )?number$/.test(declaration.type?.getText() ?? '') && rule !== undefined && rule.text === '')
    throw new Error(`${owner}.${property.name}: the rule of its check is not in RULES`);
  if (rule?.byDefault !== undefined && Number(declared?.replaceAll('_', '')) !== rule.byDefault)
    if (/^[\d_]+$/.test(declared ?? ''))
      throw new Error(`${owner}.${property.name}: @default is not ${rule.byDefault}`);
  const whenLeftOut = declaration.questionToken === undefined ? required : asDefault(declared);
  return `| ${[`\`${property.name}\``, typeOf(declaration), whenLeftOut, rule?.text ?? '', meaning].map(asCell).join(' | ')} |`;
}

/** A default that is a value is code; one that is a sentence is not. */
function asDefault(text = 'none'): string {
  const isCode =
    /^([\d_.]+|-?Infinity|true|false|\[\]|'[^']*'|\{.*\}|[\w$]+(\.[\w$]+)+(\(\))?|systemClock)$/.test(text);
  return isCode ? `\`${text}\`` : text;
}

/** A cell is one line: the items of a list get a line each when the table is shown. */
function asCell(text: string): string {
  return text
    .replaceAll(/\n\s*- /g, '<br>')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('|', '\\|')
    .trim();
}

function typeOf(declaration: ts.PropertySignature): string {
  const text = (declaration.type?.getText() ?? '')
    .replace(/\s*\| undefined$/, '')
    .replaceAll(/\s+/g, ' ')
    .replace(/^\|? ?\{ (\w+)(\(.*\)): (.*) \}\['\1'\]$/, '$2 => $3'); // the type of a method
  const plain = /^\((.*)\)$/.exec(text)?.[1];
  const unit = unitOf((declaration.name as ts.Identifier).text);
  return `\`${plain?.startsWith('(') ? plain : text}\`${unit === '' || !text.includes('number') ? '' : `, ${unit}`}`;
}

function unitOf(name: string): string {
  if (name.endsWith('Ms')) return 'ms';
  return /Bytes|MessageSize/.test(name) ? 'bytes' : '';
}

function firstSentence(symbol: ts.Symbol): string {
  const text = textOf(symbol);
  return /^.*?[.](?=\s|$)/s.exec(text)?.[0] ?? text;
}

function textOf(symbol: ts.Symbol): string {
  return ts
    .displayPartsToString(symbol.getDocumentationComment(checker))
    .replaceAll(/\{@link ([\w.]+) ?\}/g, '`$1`')
    .replaceAll(/\bdocs\/([\w-]+)\.md/g, '[$1]($1.md)');
}

function tagOf(symbol: ts.Symbol, name: string): string | undefined {
  const tag = symbol.getJsDocTags(checker).find((each) => each.name === name);
  return tag && ts.displayPartsToString(tag.text).trim();
}

/** The constructors, functions and methods among exports that have a parameter of the type, or of some of its options. */
function takersOf(type: ts.Symbol, exports: readonly ts.Symbol[]): string[] {
  const instances = exports.flatMap((symbol) => classOf(symbol) ?? []);
  const takers = exports
    .filter((symbol) => !instances.includes(symbol))
    .flatMap((symbol) => callablesOf(symbol))
    .flatMap(([name, parameters]) => {
      const annotation = parameters
        .map((each) => each.type)
        .find((each) => each && mentions(each, type.name));
      return annotation === undefined ? [] : [`\`${name}\`${onlySome(annotation)}`];
    });
  return [...new Set(takers)];
}

/** For `Pick<Options, 'a' | 'b'>`, which options are taken. */
function onlySome(annotation: ts.TypeNode): string {
  const picked = /^Pick<\w+, (.*)>$/.exec(annotation.getText())?.[1];
  return picked === undefined
    ? ''
    : ` (only ${picked.replaceAll(/'(\w+)'/g, '`$1`').replaceAll(' | ', ', ')})`;
}

function mentions(node: ts.Node, name: string): boolean {
  const names = [name, ...LEFT_OUT.filter((union) => UNIONS[union]?.includes(name))];
  const isName = ts.isTypeReferenceNode(node) && names.includes(node.typeName.getText());
  return isName || (ts.forEachChild(node, (child) => mentions(child, name)) ?? false);
}

/** Types of options that parameters have by the name of a union. */
const UNIONS: Readonly<Record<string, readonly string[]>> = {
  ClientOptions: ['BrokerClientOptions', 'HttpClientOptions'],
};

type Callable = readonly [name: string, parameters: readonly ts.ParameterDeclaration[]];

/** The class of an exported object, such as `scheduler`: programs have its methods by the name of the object. */
function classOf(symbol: ts.Symbol): ts.Symbol | undefined {
  if (!(symbol.flags & ts.SymbolFlags.Variable)) return undefined;
  const type = checker.getTypeOfSymbol(symbol).symbol as ts.Symbol | undefined;
  return type && type.flags & ts.SymbolFlags.Class ? type : undefined;
}

function callablesOf(symbol: ts.Symbol): Callable[] {
  const declarations = (classOf(symbol) ?? symbol).declarations ?? [];
  return declarations.flatMap((declaration): Callable[] => {
    if (ts.isFunctionDeclaration(declaration)) return [[`${symbol.name}(…)`, [...declaration.parameters]]];
    if (!ts.isClassDeclaration(declaration)) return [];
    return declaration.members.flatMap((member): Callable[] => {
      if (ts.isConstructorDeclaration(member)) return [[`new ${symbol.name}(…)`, [...member.parameters]]];
      const isPublic = ts.isMethodDeclaration(member) && ts.isIdentifier(member.name) && !isHidden(member);
      return isPublic ? [[`${symbol.name}.${member.name.getText()}(…)`, [...member.parameters]]] : [];
    });
  });
}

function isHidden(member: ts.MethodDeclaration): boolean {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return (
    (ts.getCombinedModifierFlags(member) & hidden) !== 0 ||
    ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')
  );
}

/** The rule of an option, and its default if that is a number, by `Interface.option`. */
type Rules = Map<string, { readonly text: string; readonly byDefault: number | undefined }>;

/** Reads every `{ … } satisfies OptionTable<…>` of the sources. */
function rulesOfTables(): Rules {
  const rules: Rules = new Map();
  const visit = (node: ts.Node): void => {
    if (ts.isSatisfiesExpression(node)) readTable(node, rules);
    ts.forEachChild(node, visit);
  };
  for (const file of program.getSourceFiles()) {
    if (!file.isDeclarationFile && !file.fileName.includes('node_modules')) visit(file);
  }
  return rules;
}

function readTable({ expression, type }: ts.SatisfiesExpression, rules: Rules): void {
  const table = ts.isAsExpression(expression) ? expression.expression : expression;
  if (!type.getText().includes('OptionTable') || !ts.isObjectLiteralExpression(table)) return;
  for (const row of table.properties) {
    if (!ts.isPropertyAssignment(row) || !ts.isArrayLiteralExpression(row.initializer)) continue;
    const [check, byDefault] = row.initializer.elements;
    const owner = ownerOf(type, row.name.getText());
    if (check === undefined || owner === undefined) continue;
    rules.set(`${owner}.${row.name.getText()}`, { text: ruleOf(check), byDefault: numberOf(byDefault) });
  }
}

/** The interface that declares an option of a table. */
function ownerOf(type: ts.TypeNode, option: string): string | undefined {
  if (type.getText() === 'TaskOptionTable') return 'TaskOptions';
  const argument = ts.isTypeReferenceNode(type) ? type.typeArguments?.[0] : undefined;
  if (argument === undefined) return undefined;
  const given = checker.getTypeFromTypeNode(argument);
  for (const member of given.isUnion() ? given.types : [given]) {
    const declaration = checker.getPropertyOfType(member, option)?.declarations?.[0];
    if (declaration !== undefined) return (declaration.parent as ts.InterfaceDeclaration).name.text;
  }
  return undefined;
}

/** The rules of checks without arguments of their own. */
const RULES: Readonly<Record<string, string>> = {
  requireDuration: '0 to 8.64e15',
  requireFiniteNumber: 'finite',
  requireFraction: '0 to 1',
  requireRate: '> 0, or `Infinity`',
  requireTime: 'from 1970 on',
  requireTimeout: 'a number, or `Infinity`',
};

function ruleOf(check: ts.Expression): string {
  if (ts.isIdentifier(check)) return RULES[check.text] ?? ruleOfConstant(check);
  if (!ts.isCallExpression(check)) return '';
  const [first, second] = check.arguments;
  if (first === undefined) return '';
  switch (check.expression.getText()) {
    case 'integer': {
      const [from, to] = [numberOf(first), second && numberOf(second)];
      return to === undefined ? `an integer >= ${from}` : `an integer from ${from} to ${to}`;
    }
    case 'milliseconds': {
      const [from, to] = [numberOf(first), second && numberOf(second)];
      return to === undefined ? `>= ${from}` : `${from} to ${to}`;
    }
    case 'orInfinity':
      return `${ruleOf(first)}, or \`Infinity\``;
    case 'oneOf':
      return check.arguments.map((value) => `\`${value.getText()}\``).join(', ');
    default:
      return '';
  }
}

/** The rule of a check that has a name: `const sizeOfFile = integer(1)`. */
function ruleOfConstant(name: ts.Identifier): string {
  const declaration = checker.getSymbolAtLocation(name)?.valueDeclaration;
  const isConstant = declaration !== undefined && ts.isVariableDeclaration(declaration);
  return isConstant && declaration.initializer !== undefined ? ruleOf(declaration.initializer) : '';
}

const OPERATORS: Readonly<Partial<Record<ts.SyntaxKind, (a: number, b: number) => number>>> = {
  [ts.SyntaxKind.PlusToken]: (a, b) => a + b,
  [ts.SyntaxKind.MinusToken]: (a, b) => a - b,
  [ts.SyntaxKind.AsteriskToken]: (a, b) => a * b,
  [ts.SyntaxKind.AsteriskAsteriskToken]: (a, b) => a ** b,
};

/** The value of a constant expression; undefined if it is not a number. */
function numberOf(node: ts.Expression | undefined): number | undefined {
  if (node === undefined) return undefined;
  if (ts.isNumericLiteral(node)) return Number(node.text);
  if (ts.isParenthesizedExpression(node)) return numberOf(node.expression);
  if (ts.isBinaryExpression(node)) {
    const [a, b] = [numberOf(node.left), numberOf(node.right)];
    return a === undefined || b === undefined ? undefined : OPERATORS[node.operatorToken.kind]?.(a, b);
  }
  const symbol = checker.getSymbolAtLocation(node);
  const origin = symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const declaration = origin?.valueDeclaration;
  return declaration && (ts.isVariableDeclaration(declaration) || ts.isPropertyAssignment(declaration))
    ? numberOf(declaration.initializer)
    : undefined;
}

if (process.argv[1] === import.meta.filename) writeFileSync(PAGE, optionsPage());
