package methods_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestInterruptRightAfterTheMessage sends a message and its interrupt in one write, many
// times. Mostly the turn has not begun when the interrupt arrives.
func TestInterruptRightAfterTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := servertest.Lines(t, codexserver.New(engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		}), nil))
		if err := end.Write(t.Context(), [][]byte{[]byte(`{"jsonrpc":"2.0","id":0,"method":"newConversation","params":{}}`)}); err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(servertest.Read(t, end, `"conversationId"`), `"conversationId":"`)
		id, _, _ = strings.Cut(id, `"`)
		for range 30 {
			err := end.Write(t.Context(), [][]byte{
				fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"sendUserMessage","params":{"conversationId":%q,"items":[]}}`, id),
				fmt.Appendf(nil, `{"jsonrpc":"2.0","id":2,"method":"interruptConversation","params":{"conversationId":%q}}`, id),
			})
			if err != nil {
				t.Fatal(err)
			}
			servertest.Read(t, end, `"id":1,"result":{}`)
			servertest.Read(t, end, `"abortReason":"interrupted"`)
		}
	})
}
