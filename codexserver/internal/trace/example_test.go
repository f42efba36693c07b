package trace_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/codexserver/internal/trace"
)

// Every message is a line. The values of members such as apiKey are replaced.
func Example() {
	var written bytes.Buffer
	hooks := trace.Hooks(&written)
	hooks.Received([]byte(`{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"config":{"apiKey":"sk-1"}}}`))
	hooks.Sent([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	for line := range bytes.Lines(written.Bytes()) {
		_, message, _ := bytes.Cut(line, []byte("Z ")) // after the time
		os.Stdout.Write(message)
	}
	fmt.Println(trace.Hooks(nil).Sent == nil)
	// Output:
	// < {"jsonrpc":"2.0","id":1,"method":"newConversation","params":{"config":{"apiKey":"<redacted>"}}}
	// > {"jsonrpc":"2.0","id":1,"result":{}}
	// true
}
