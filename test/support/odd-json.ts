/** JSON that decoders and encoders are known to change, as text. Each name says what would be lost. */

/** Objects: fit for `params`, `result` and `data`. */
export const ODD_OBJECTS: Readonly<Record<string, string>> = {
  'integers above 2^53': '{"n":2512292042121000001,"id":9007199254740993,"neg":-9223372036854775808}',
  'spellings of numbers':
    '{"a":1.0,"b":-0,"c":1e400,"d":0.1e-7,"e":1E+2,"f":-0.0,"g":100000000000000000000000}',
  escapes: '{"\\u0061":"\\u0062\\/\\u002f\\b\\f\\n\\r\\t\\"\\\\","del":"\u007f","line":"\u2028\u2029"}',
  surrogates:
    '{"pair":"\\ud83d\\ude00","raw":"😀","lone":"\\ud800","order":"\\udc00\\ud800","nul":"\\u0000"}',
  'order of keys': '{"z":1,"10":2,"2":3,"a":4,"1":5,"-1":6}',
  'unknown members': '{"_meta":{"vendor/x":{"y":[null,true,false]}},"future":{"deep":[{"er":{}}]},"":""}',
  'names of prototypes':
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{}},"toString":1,"hasOwnProperty":null}',
  'repeated members': '{"a":1,"a":2,"\\u0061":3}',
  'white space': '{ "a" :\t[ 1 ,  2 ]  ,\t"b":{ } , "c" : [ ] }',
  'line breaks': '{\n  "a": [\n    1,\n\n    {}\n  ]\n}',
  depth: `{"deep":${'['.repeat(5_000)}${']'.repeat(5_000)},"objects":${'{"a":'.repeat(500)}1${'}'.repeat(500)}}`,
  emptiness: '{"":{"":[[],{},"",[[]]]}}',
  'names of the envelope':
    '{"jsonrpc":"1.0","id":1,"method":"x","params":{"id":2},"result":{},"error":{"code":1}}',
  'a long text': `{"text":"${'aé😀\\n'.repeat(20_000)}"}`,
};

/** Results of calls that something between client and server likes to check or complete. */
export const ODD_RESULTS: Readonly<Record<string, string>> = {
  'a result without content': '{}',
  'structured content that violates its schema':
    '{"content":[],"structuredContent":{"count":"many","date":"31.2.","more":null}}',
  'structured content that is no object': '{"content":[],"structuredContent":[1,2,3]}',
  'an error result with content of another shape':
    '{"isError":true,"structuredContent":{"odd":1},"content":[{"type":"text","text":"why"}]}',
  'unknown types of content':
    '{"content":[{"type":"hologram","frames":[1,2],"_meta":{"a":1}},{"type":"text"},{"type":"resource_link","uri":"x:y","size":1.50}]}',
  'resources with all their members':
    '{"contents":[{"uri":"a","mimeType":"text/x;v=1","text":"t","_meta":{"k":1.0},"icons":[]},{"uri":"b","blob":"AA==","more":1}]}',
};

/** Bodies of errors. */
export const ODD_ERRORS: Readonly<Record<string, string>> = {
  'a missing resource': '{"code":-32002,"message":"Resource not found","data":{"uri":"file:\\/\\/x"}}',
  'a required elicitation':
    '{"code":-32042,"message":"Go","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://x"}]}}',
  'a code of the application':
    '{"data":[1.0,{"__proto__":1}],"message":"\\u0041pplication","code":1234,"more":true}',
  'a code that is none': '{"code":"odd","message":null}',
  'an unknown method': '{"code":-32601,"message":"Method not found"}',
};

/** Ids that agents use, spelled in every way that a decoder would normalise. */
export const ODD_IDS: readonly string[] = [
  '0',
  '1',
  '"1"',
  '-1',
  '1.0',
  '1e2',
  '-0',
  '9007199254740993',
  '123456789012345678901234567890',
  '""',
  '"\\u0061\\/\\"\\\\"',
  '"ключ 😀"',
  `"${'x'.repeat(2_000)}"`,
];

const SCHEMAS = [
  '{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://x/y","definitions":{"a":{"$anchor":"z","type":"string"}},"properties":{"p":{"$ref":"#/definitions/a"}}}',
  '{"type":"object","$defs":{"n":{"const":1.0}},"anyOf":[true,false],"oneOf":[{"$ref":"#/$defs/n"}],"additionalProperties":{"type":["string","null"]},"patternProperties":{"^x-":true},"not":{}}',
  '{"type":"object","properties":{"a":true,"b":false},"additionalProperties":false,"x-vendor":{"order":["b","a"]},"default":1e400}',
];

/** Lists with items that carry all that the specification knows and more. */
export const ODD_LISTS: Readonly<Record<string, string>> = {
  'tools/list': `{"tools":[${SCHEMAS.map(
    (schema, at) =>
      `{"name":"t${at}","title":"T\\u00e9","inputSchema":${schema},"outputSchema": ${schema},"icons":[{"src":"data:,","sizes":["any"],"theme":"dark"}],"annotations":{"readOnlyHint":false},"execution":{"taskSupport":"optional"},"timeoutMs":1e3,"securitySchemes":[],"_meta":{"__proto__":{"a":1}}}`,
  ).join(' , ')}],"vendor":{"page":1.0}}`,
  'prompts/list':
    '{"more":[],"prompts":[{"arguments":[{"required":true,"name":"\\u0061","x":1.0}],"name":"p","icons":[]}]}',
  'resources/list':
    '{"resources":[{"uri":"a:\\/b","size":9007199254740993,"annotations":{"priority":0.50},"name":"r"}],"_meta":{"n":-0}}',
  'resources/templates/list':
    '{ "resourceTemplates" : [ {"uriTemplate":"x:{+a}","name":"n","mimeType":"a/b;c=d"} ] }',
};
