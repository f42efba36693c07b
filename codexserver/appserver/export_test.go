package appserver

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Dial makes the engine connect to an app-server of the test in place of starting one.
func (e *Engine) Dial(dial func(context.Context) (jsonrpc.Transport, error)) {
	e.open = func(ctx context.Context) (*child, error) {
		t, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		c, err := connect(ctx, t, &tail{log: e.options.Logger}, &e.options)
		if err == nil {
			c.policy, c.environ = e.defaults.policy, e.environment()
		}
		return c, err
	}
}

// RunsOn makes the engine that of another system.
func (e *Engine) RunsOn(system string) { e.system = system }

// TrustTemporary makes the engine take programs from folders for temporary files, where tests have theirs.
func (e *Engine) TrustTemporary() { e.programs.Temporary = []string{} }

// FindAnywhere is Find with the folders for temporary files.
func FindAnywhere(path string) (string, error) {
	return first(find(&box.Programs{Temporary: []string{}}, path))
}

// PID is the id of the app-server's process, 0 without one.
func (e *Engine) PID() int {
	e.mu.Lock()
	l := e.launch
	e.mu.Unlock()
	if l == nil {
		return 0
	}
	<-l.done
	if l.err != nil {
		return 0
	}
	return l.child.pid
}

// Queue queues a message of another program into a conversation.
func (e *Engine) Queue(ctx context.Context, id, words string) error {
	input, err := inputItems(protocol.TextInput(words))
	if err != nil {
		return err
	}
	return e.control(ctx, "thread/queue/add", map[string]any{"threadId": id, "clientUserMessageId": "m1", "input": input}, nil)
}
