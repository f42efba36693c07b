package mcp

import (
	"errors"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// Handler returns the handler of the session. It answers unknown methods with -32601. If
// methods is true, it also has the methods of Codex's server of September 2025, each group
// only if the engine has its interface.
func (ss *LegacySession) Handler(methods bool) jsonrpc.Handler {
	m := &jsonrpc.Mux{}
	mcptypes.Initialize.Handle(m, ss.initialize)
	mcptypes.Ping.Handle(m, ss.ping)
	mcptypes.ToolsList.Handle(m, ss.listTools)
	mcptypes.LoggingSetLevel.Handle(m, ss.setLevel)
	m.Handle(mcptypes.ToolsCall.Name(), jsonrpc.HandlerFunc(ss.callTool))

	ss.addResourceMethods(m)
	if !methods {
		return ss.limited(m)
	}
	ss.addConversationMethods(m)
	ss.addMessageMethods(m)
	e := ss.server.Engine
	if a, ok := e.(engine.Accounts); ok {
		ss.addAccountMethods(m, a)
	}
	ss.addWorkspaceMethods(m, e)
	return ss.limited(m)
}

// Inline returns the methods to handle on the read loop: those whose order matters, and
// those that must be answered at any time. They return at once. Some only join a lane and
// continue in another goroutine, see handleInOrder.
func LegacyInline() []string {
	return []string{
		mcptypes.Ping.Name(), mcptypes.ToolsList.Name(), mcptypes.LoggingSetLevel.Name(),
		"addConversationListener", "removeConversationListener",
		"sendUserMessage", "sendUserTurn", "interruptConversation",
		"setDefaultModel",
		"loginApiKey", "loginChatGpt", "cancelLoginChatGpt", "logoutChatGpt",
	}
}

type empty = struct{}

// required refuses an empty member.
func required(path, value string) error {
	if value == "" {
		return invalid(path, "missing")
	}
	return nil
}

// oneOf refuses a word that is not one of words. "" means a missing member.
func oneOf[S ~string](path string, got S, words []S) error {
	if got == "" || slices.Contains(words, got) {
		return nil
	}
	return invalid(path, "%q must be one of %q", string(got), words)
}

// refused returns the error for a request that is wrong.
func refused(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)
}

// failed returns the error for a correct request that failed.
func failed(doing string, err error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s: %v", doing, err)
}

// answerFor returns refused or failed, depending on err.
func answerFor(doing string, err error) error {
	var no *engine.RefusedError
	if errors.As(err, &no) || errors.Is(err, engine.ErrNotFound) {
		return refused("%s: %v", doing, err)
	}
	return failed(doing, err)
}
