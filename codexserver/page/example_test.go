package page_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// A server whose user sees the work and decides in the browser, even if the client cannot
// show questions.
func Example() {
	p, err := page.Listen(&page.Options{
		Announce: func(link string) {
			address, secret, _ := strings.Cut(link, "#") // print it where the user alone sees it
			fmt.Println(strings.HasPrefix(address, "http://127.0.0.1:"), len(secret))
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		out := host.Ask(ctx, approval.Command{Command: []string{"git", "push"}, Cwd: "/work"})
		host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
		return nil
	})
	client, transport := jsonrpc.Pipe()
	client.Close() // there is none in this example
	fmt.Println(codexserver.New(e, &codexserver.Options{Desk: p}).Serve(context.Background(), transport))
	// Output:
	// true 43
	// <nil>
}
