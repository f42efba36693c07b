package mcpcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Options describe the client. The zero value of each field is its default.
type Options struct {
	// Name and Version are those of the client.
	Name, Version string
	// Protocol is the only version of MCP to use. Default: 2026-07-28 if the server offers
	// it, otherwise the newest version with a handshake.
	Protocol string
	// Ask answers a question: params and result are those of elicitation/create. Several
	// goroutines may call it at a time. ctx ends when the server does not wait for the
	// answer any more. After an error or a panic the question is declined. Without Ask the
	// server is told that no one can be asked.
	Ask func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// CallOf returns the id of the request that an elicitation/create belongs to, as JSON. It
	// is asked after the notifications before it. Default: "", none.
	CallOf func(params json.RawMessage) (request string)
	// ToolsChanged is called when the server says that its tools have changed. It must not wait. Nil ignores it.
	ToolsChanged func()
	// Extensions are the extensions of MCP 2026-07-28 to declare besides tasks.
	Extensions []string
	// Silence is how long the server may take to answer server/discover before initialize
	// is sent. Default: 3s.
	Silence time.Duration
	// Farewell is how long a cancelled call may take to end, see [Call].Open. Default: 0.
	Farewell time.Duration
	// Again reports whether a poll of a task that failed with err is repeated on the same
	// connection. Default: it is not.
	Again func(err error) bool
	// MaxMessage is the longest message of the server, in bytes. Default: 64 MiB.
	MaxMessage int
	// Hide removes secrets from a text of the server before it is shortened. Default: none.
	Hide func(text string) string
}

// Session is a connection to a server. It is safe for concurrent use.
type Session struct {
	o       Options
	peer    *jsonrpc.Peer
	running sync.WaitGroup
	asking  sync.WaitGroup
	ending  context.Context // ends with the server's output, or the first request that is lost
	end     context.CancelFunc
	modern  bool
	server  mcptypes.Implementation
	advice  string                    // the server's instructions
	meta    map[string]jsontext.Value // of the answer to server/discover

	mu   sync.Mutex
	open map[string]*inbox // of the calls, by the ids of their requests as JSON, and by their tasks
}

// Errors that callers decide on.
var (
	// ErrUnsent is a [jsonrpc.ErrClosed] for a request that was not sent.
	ErrUnsent error = unsentError{}
	// ErrCancelled means that the task was cancelled.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrLeave is the cause of a context that ends without an end of its task.
	ErrLeave = errors.New("the client leaves")
)

// ErrAnswer means that the server sent an answer that MCP does not allow.
const ErrAnswer answerError = "the server's answer cannot be read"

type answerError string

// Error implements error.
func (e answerError) Error() string { return string(e) }

type unsentError struct{}

// Error implements error.
func (unsentError) Error() string { return jsonrpc.ErrClosed.Error() + " before the request" }

// Unwrap returns [jsonrpc.ErrClosed].
func (unsentError) Unwrap() error { return jsonrpc.ErrClosed }

const defaultSilence = 3 * time.Second

// Connect begins a session with the server at t. The session owns t.
func Connect(ctx context.Context, t jsonrpc.Transport, o *Options) (*Session, error) {
	s := &Session{open: map[string]*inbox{}}
	s.ending, s.end = context.WithCancel(context.Background())
	if o != nil {
		s.o = *o
	}
	if s.o.Silence <= 0 {
		s.o.Silence = defaultSilence
	}
	s.peer = jsonrpc.NewPeer(t, jsonrpc.HandlerFunc(s.serve), &jsonrpc.Options{
		Cancellation: jsonrpc.MCPCancel, LenientAnswers: true, TextIDs: true,
		Inline:     (*jsonrpc.Request).IsNotification, // before the answer that follows them
		MaxMessage: s.o.MaxMessage,
		Hooks:      &jsonrpc.Hooks{InputEnd: func(error) { s.end() }},
	})
	s.running.Go(func() { _ = s.peer.Run(context.Background()) }) // calls report the end
	if err := s.greet(ctx); err != nil {
		_ = s.Close() // err is why
		return nil, err
	}
	return s, nil
}

// flush bounds the time for what was sent last.
const flush = time.Second

// Close ends the connection and waits for its end, and for the functions that ask. Calls without an answer fail with
// [jsonrpc.ErrClosed].
func (s *Session) Close() error {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.asking.Wait() // a decision that was made is sent
	ctx, stop := context.WithTimeout(context.Background(), flush)
	_ = s.peer.Flush(ctx) // best effort, for a server that reads
	stop()
	err := s.peer.Close()
	s.running.Wait()
	return err
}

// Over reports whether the connection has ended, or is about to.
func (s *Session) Over() bool {
	select {
	case <-s.peer.Done():
		return true
	default:
		return s.ending.Err() != nil
	}
}

// closed returns the error of a request, which it shortens, and notes the end of the connection,
// which the peer reports later if it waits for a child.
func (s *Session) closed(err error) error {
	if errors.Is(err, jsonrpc.ErrClosed) {
		s.end()
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && len(refused.Message)+len(refused.Data) > maxError {
		return s.refusal(refused.Code, refused.Message, refused.Data)
	}
	return err
}

// maxError bounds what an error has of a server's text, in bytes.
const maxError = 64 << 10

// refusal returns an error of the server with a message of bounded length. Data that is longer is
// left out.
func (s *Session) refusal(code jsonrpc.Code, message string, data json.RawMessage) error {
	if len(data) > maxError {
		data = nil
	}
	return &jsonrpc.Error{Code: code, Message: brief(message, s.o.Hide), Data: data}
}

// Brief returns the beginning of a server's text, for an error.
func Brief(text string) string { return brief(text, nil) }

func brief(text string, hide func(string) string) string {
	if len(text) <= maxError {
		return text
	}
	shown := strings.ToValidUTF8(text[:maxError], "")
	if hide != nil {
		shown = hide(shown)
	}
	return shown + fmt.Sprintf("… (%d bytes in all)", len(text))
}

// Modern reports whether the session uses MCP 2026-07-28.
func (s *Session) Modern() bool { return s.modern }

// Ended reports whether the server's output has ended, or a request was lost.
func (s *Session) Ended() bool { return s.ending.Err() != nil }

// Server returns what the server says about itself.
func (s *Session) Server() mcptypes.Implementation { return s.server }

// Instructions returns what the server says to a model about its use; "" if it says nothing.
func (s *Session) Instructions() string { return s.advice }

// Meta returns a member of the _meta with which the server introduced itself, nil if it is missing. A handshake has
// none.
func (s *Session) Meta(name string) jsontext.Value { return s.meta[name] }

// greet finds out which versions the server offers.
func (s *Session) greet(ctx context.Context) error {
	if s.o.Protocol != "" && s.o.Protocol != modern.ProtocolVersion {
		return s.initialize(ctx)
	}
	probe, stop := context.WithTimeout(ctx, s.o.Silence)
	defer stop()
	var found struct {
		SupportedVersions []string                  `json:"supportedVersions"`
		Instructions      jsontext.Value            `json:"instructions"`
		Meta              map[string]jsontext.Value `json:"_meta"`
	}
	err := s.Request(probe, modern.ServerDiscover.Name(), nil, &found)
	if refusedOnly(err) {
		err = s.Request(probe, modern.ServerDiscover.Name(), nil, &found)
	}
	var refused *jsonrpc.Error
	switch {
	case err == nil && slices.Contains(found.SupportedVersions, modern.ProtocolVersion):
		s.modern, s.meta = true, found.Meta
		_ = jsonv2.Unmarshal(found.Meta[modern.MetaServerInfo], &s.server) // it may be missing
		_ = jsonv2.Unmarshal(found.Instructions, &s.advice)                // and so may they
		return nil
	case err == nil, errors.As(err, &refused), probe.Err() != nil && ctx.Err() == nil, errors.Is(err, ErrAnswer):
		if err == nil {
			err = fmt.Errorf("the server offers %s", Brief(fmt.Sprintf("%q", found.SupportedVersions)))
		}
		if s.o.Protocol != "" {
			break
		}
		older := s.initialize(ctx)
		if older == nil {
			return nil
		}
		return fmt.Errorf("%w; with MCP %s: %w", older, modern.ProtocolVersion, err)
	}
	return fmt.Errorf("connecting with MCP %s: %w", modern.ProtocolVersion, err)
}

// refusedOnly reports whether a server refused a request for its version, and supports 2026-07-28.
func refusedOnly(err error) bool {
	var refused *jsonrpc.Error
	var data struct {
		Supported []string `json:"supported"`
	}
	return errors.As(err, &refused) && refused.Code == modern.CodeUnsupportedProtocolVersion &&
		jsonv2.Unmarshal(refused.Data, &data) == nil && slices.Contains(data.Supported, modern.ProtocolVersion)
}

func (s *Session) initialize(ctx context.Context) error {
	p := &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion,
		ClientInfo:      mcptypes.Implementation{Name: s.o.Name, Version: s.o.Version},
	}
	if s.o.Protocol != "" {
		p.ProtocolVersion = s.o.Protocol
	}
	if s.o.Ask != nil {
		p.Capabilities.Elicitation = map[string]json.RawMessage{}
	}
	var r struct {
		ServerInfo   jsontext.Value `json:"serverInfo"`
		Instructions jsontext.Value `json:"instructions"`
	}
	if err := s.peer.Call(ctx, mcptypes.Initialize.Name(), p, &r); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	_ = jsonv2.Unmarshal(r.ServerInfo, &s.server)   // it may be missing
	_ = jsonv2.Unmarshal(r.Instructions, &s.advice) // and so may they
	return mcptypes.NotificationsInitialized.Notify(ctx, s.peer, nil)
}

// metadata returns the _meta of a request of MCP 2026-07-28.
func (s *Session) metadata(tasks bool) map[string]any {
	capabilities := map[string]any{}
	if s.o.Ask != nil {
		capabilities["elicitation"] = struct{}{}
	}
	extensions := map[string]any{}
	if tasks {
		extensions[modern.ExtensionTasks] = struct{}{}
	}
	for _, name := range s.o.Extensions {
		extensions[name] = struct{}{}
	}
	if len(extensions) > 0 {
		capabilities["extensions"] = extensions
	}
	return map[string]any{
		modern.MetaProtocolVersion:    modern.ProtocolVersion,
		modern.MetaClientInfo:         map[string]string{"name": s.o.Name, "version": s.o.Version},
		modern.MetaClientCapabilities: capabilities,
	}
}

// Request sends a request that is not a tool's call, such as tools/list, and decodes the result
// into the pointer result.
func (s *Session) Request(ctx context.Context, method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	if s.modern || method == modern.ServerDiscover.Name() {
		params["_meta"] = s.metadata(true)
	}
	if s.Over() {
		return ErrUnsent
	}
	var raw json.RawMessage
	switch err := s.closed(s.peer.Call(ctx, method, params, &raw)); {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return decode(method, raw, result)
}

// decode reads an answer strictly, except that it ignores unknown members.
func decode(method string, raw json.RawMessage, into any) error {
	if err := jsonv2.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w: %s", method, ErrAnswer, Brief(err.Error()))
	}
	return nil
}

// serve handles what the server sends. Notifications arrive on the read loop.
func (s *Session) serve(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch {
	case r.IsNotification():
		s.notified(r)
		return nil, nil
	case r.Method == mcptypes.Ping.Name():
		return struct{}{}, nil
	case r.Method == mcptypes.ElicitationCreate.Name() && s.o.Ask != nil && !s.modern:
		s.asked(ctx, r)
		return nil, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no method %s", r.Method)
}

// beginAsking counts a question for Close, and reports false after it: Close may be waiting already.
func (s *Session) beginAsking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Err() != nil {
		return false
	}
	s.asking.Add(1)
	return true
}

// asked answers an elicitation/create.
func (s *Session) asked(ctx context.Context, r *jsonrpc.Request) {
	if !s.beginAsking() {
		_ = r.Responder().Reply(nil, jsonrpc.ErrClosed)
		return
	}
	defer s.asking.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ending, func() { cancel(jsonrpc.ErrClosed) })()
	reply := r.Responder()
	if s.o.CallOf != nil {
		s.mu.Lock()
		box := s.open[s.o.CallOf(r.Params)]
		s.mu.Unlock()
		if box != nil {
			box.settle(ctx)
		}
	}
	_ = reply.Reply(s.ask(ctx, r.Params)) // the server may have gone
}

// askUntil is ask for a caller that does not wait longer than ctx. Close waits for the function.
func (s *Session) askUntil(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	if !s.beginAsking() {
		return nil, jsonrpc.ErrClosed
	}
	type answered struct {
		answer json.RawMessage
		err    error
	}
	done := make(chan answered, 1)
	go func() {
		defer s.asking.Done()
		answer, err := s.ask(ctx, params)
		done <- answered{answer, err}
	}()
	select {
	case a := <-done:
		return a.answer, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ask calls [Options].Ask.
func (s *Session) ask(ctx context.Context, params json.RawMessage) (answer json.RawMessage, err error) {
	if s.o.Ask == nil {
		return nil, errors.New("no one can be asked")
	}
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, fmt.Errorf("asking failed: %v", p)
		}
	}()
	answer, err = s.o.Ask(ctx, params)
	if err == nil && jsontext.Value(answer).Kind() != '{' {
		err = errors.New("the answer is not a JSON object")
	}
	return answer, err
}
