export const HELP = `Sidegate: an MCP gateway beside your agents.

Usage:
  sidegate [flags]                     serve the servers of sidegate.json
  sidegate <url> [flags]               serve one remote server
  sidegate [flags] -- <command> …      serve one server that is a command
  sidegate tools [server]              print the tools of one server or of all
  sidegate call <tool> [json | -]      call a tool; - reads its arguments from stdin
  sidegate check                       check the configuration and try each server

tools, call and check take a URL or -- <command> … as well.

Flags:
  --config <file>         configuration; else SIDEGATE_CONFIG, else ./sidegate.json
  --host <address>        address to listen on (127.0.0.1)
  --port <number>         port to listen on (8808; 0 takes a free one)
  --log-level <level>     silent, fatal, error, warn, info, debug or trace (info)
  --stdio                 serve one agent on stdin and stdout instead of HTTP
  --server <id>           which server: for --stdio, tools and call
  --header 'Name: value'  header for <url>, repeatable; \${VARIABLE} is replaced
  --fresh                 tools: ask the server, not the cache
  --json                  tools: whole definitions as JSON
  -h, --help              this text
  -v, --version           the version

Without a file, a URL or a command a bundled demonstration server is served.
Exit status: 0 done, 1 failed, 2 the command line is wrong.`;
