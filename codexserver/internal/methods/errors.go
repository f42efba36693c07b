package methods

import (
	"errors"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

type empty = struct{}

// required refuses an empty member.
func required(path, value string) error {
	if value == "" {
		return mcp.Invalid(path, "missing")
	}
	return nil
}

// oneOf refuses a word that is not one of words. "" means a missing member.
func oneOf[S ~string](path string, got S, words []S) error {
	if got == "" || slices.Contains(words, got) {
		return nil
	}
	return mcp.Invalid(path, "%q must be one of %q", string(got), words)
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
