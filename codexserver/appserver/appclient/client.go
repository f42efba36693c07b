package appclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Options say who the client is, and what it does when the app-server asks or reports something. Nil
// is valid; the zero value of each field is its default.
type Options struct {
	// Info names the program. Codex records the name, and sends it to the model's provider.
	// Default: the name codexmcp_appclient and the version dev.
	Info apptypes.ClientInfo
	// Capabilities are what the client asks for beyond the stable protocol. Default: nothing.
	Capabilities apptypes.Capabilities

	// Answers answer the questions of the app-server. Default: each is declined.
	Answers Answers

	// Note gets the notifications of the app-server, one at a time and in order, whatever their
	// thread; [Client.Begin] also passes on those of its turn. It must not wait. Default: nothing.
	Note func(method string, n *apptypes.Note)

	// Foreign gets turn/started and turn/completed of the turns that no [Client.Begin] began: those that Codex begins by itself,
	// in any thread, or for another program, and those of sub-agents. It is called as Note, and after it; for a turn that
	// might be one that was just asked for, when Codex has said which that is. Default: nothing.
	Foreign func(method string, n *apptypes.Note)

	// Logger logs what the client does not understand. Default: nothing is logged.
	Logger *slog.Logger
}

// Server is what an app-server says of itself.
type Server struct {
	// Version is its release.
	Version Version
	// Home is its CODEX_HOME; "" if it does not say.
	Home string
}

// Client is a connection to an app-server. It is safe for concurrent use.
type Client struct {
	options Options
	log     *slog.Logger
	peer    *jsonrpc.Peer
	answers *jsonrpc.Mux

	unread sync.Map // methods that were reported as not read

	done chan struct{} // closed when err is set
	err  error

	asked sync.WaitGroup // the requests of Begin, with what they pass on

	mu     sync.Mutex
	closed bool // Begin begins nothing any more
	server Server
	turns  map[string]*Turn // that have not ended, by thread
}

// maxMessage bounds a line of the app-server. Lists of models and images are long.
const maxMessage = 256 << 20

// closeLimit bounds the orderly end of a connection.
const closeLimit = time.Second

// withdrawal is how the app-server withdraws a question that another program has answered or whose turn has
// ended. It then ignores the answer.
var withdrawal = &jsonrpc.CancelProfile{Method: apptypes.NoteServerRequestResolved, IDMember: "requestId", Answer: true,
	Inbound: true}

// New returns a client that owns the transport, and begins to read. Call [Client.Initialize] before anything
// else, and [Client.Close] in the end.
func New(t jsonrpc.Transport, o *Options) *Client {
	c := &Client{done: make(chan struct{}), turns: map[string]*Turn{}}
	if o != nil {
		c.options = *o
	}
	if c.options.Info.Name == "" {
		c.options.Info = apptypes.ClientInfo{Name: "codexmcp_appclient", Version: "dev"}
	}
	if c.log = c.options.Logger; c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.answers = c.options.Answers.mux()
	c.answers.Default(jsonrpc.HandlerFunc(c.refuse))
	c.peer = jsonrpc.NewPeer(t, jsonrpc.HandlerFunc(c.serve), &jsonrpc.Options{
		OmitVersion: true, MaxMessage: maxMessage, Cancellation: withdrawal,
		DrainTimeout: time.Nanosecond, // nobody reads the answers
		// it comes before the answer that ends the command
		Inline: jsonrpc.Methods(apptypes.NoteCommandExecOutputDelta),
	})
	go func() {
		defer close(c.done)
		err := c.peer.Run(context.Background())
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.asked.Wait()
		c.err = err
	}()
	return c
}

// Start starts a program as [jsonrpc.Command] does, such as codex with the argument app-server, and
// initializes the connection. The context is for that alone: [Client.Close] ends the program.
func Start(ctx context.Context, cmd *exec.Cmd, o *Options) (*Client, error) {
	t, err := jsonrpc.Command(cmd, 0)
	if err != nil {
		return nil, fmt.Errorf("appclient: %w", err)
	}
	c := New(t, o)
	if err := c.Initialize(ctx); err != nil {
		if errors.Is(err, jsonrpc.ErrClosed) {
			<-c.done // the transport waits for the program and kills it: its exit status explains more
		}
		if end := c.Close(); end != nil {
			err = fmt.Errorf("%w (%w)", err, end)
		}
		return nil, fmt.Errorf("appclient: %w", err)
	}
	return c, nil
}

// Initialize tells the app-server who the client is. The error is a [*TooOldError]
// for a version that this package does not drive; then, too, only Close may follow.
func (c *Client) Initialize(ctx context.Context) error {
	var r apptypes.InitializeReply
	p := apptypes.InitializeParams{ClientInfo: c.options.Info, Capabilities: c.options.Capabilities}
	if err := c.peer.Call(ctx, apptypes.CallInitialize, p, &r); err != nil {
		return err
	}
	_, release, _ := strings.Cut(r.UserAgent, "/") // NAME/VERSION (…)
	release, _, _ = strings.Cut(release, " ")
	v, err := ParseVersion(release)
	c.mu.Lock()
	c.server = Server{Version: v, Home: r.CodexHome}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := v.Check(); err != nil {
		return err
	}
	return c.peer.Notify(ctx, "initialized", nil)
}

// Server returns what the app-server said when the connection was initialized.
func (c *Client) Server() Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// Call calls a method of the app-server. Its errors are those of [jsonrpc.Peer.Call]: a
// [*jsonrpc.Error] is the app-server's answer, [jsonrpc.ErrClosed] the end of the connection.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.peer.Call(ctx, method, params, result)
}

// Err waits for the end of the connection and returns its reason. It is nil if the app-server ended
// its output, or after Close; for a program of [Start] it is its exit status, unless that is zero.
func (c *Client) Err() error {
	<-c.done
	return c.err
}

// Close ends the connection in order, within about a second, and closes the transport. It returns
// when both have ended. The error is that of Err. No function of the options may call it.
func (c *Client) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), closeLimit)
	defer stop()
	_ = c.peer.Shutdown(ctx) // closes the transport even if ctx ends first
	return c.Err()
}

// Abort ends the connection at once and waits for nothing. Calls that wait fail with
// [jsonrpc.ErrClosed]. Close must still follow.
func (c *Client) Abort() { _ = c.peer.Close() }
