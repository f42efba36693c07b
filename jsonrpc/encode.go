package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Envelopes are built by appending; only params and results go through the
// JSON package, straight into the buffer that is sent.
//
// A message is encoded completely before it is queued, on the goroutine that sends it. So an
// error of encoding fails one call and not the connection, several messages are encoded at the
// same time, and the caller may change its values as soon as the function returns.
//
// None of them contains a line feed, which would end the message early on a transport of lines.
// The JSON package writes none, and writeRaw takes those of raw values out.

// maxPooled is the largest buffer kept for reuse.
const maxPooled = 64 << 10

// buffers holds the buffers of messages. One belongs to the goroutine that got it, then to the
// egress queue, which puts it back.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func getBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

// putBuffer takes back a buffer that is no longer used. A large one is left to the garbage
// collector: the pool would keep it for small messages.
func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		buffers.Put(b)
	}
}

// appendString appends s as a JSON string; bad UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	// Names of methods are plain ASCII, which needs no quoting.
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			b, _ = jsontext.AppendQuote(b, s)
			return b
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// begin starts an envelope: "{", or "{" with the version and a comma.
func (p *Peer) begin(b []byte) []byte {
	if p.o.OmitVersion {
		return append(b, '{')
	}
	return append(b, `{"jsonrpc":"2.0",`...)
}

// writeCall writes a request, or a notification when id is the zero ID.
func (p *Peer) writeCall(b *bytes.Buffer, id ID, method string, params any) error {
	a := p.begin(b.AvailableBuffer())
	// Into the spare room of the buffer, so that Write below copies nothing.
	if !id.IsZero() {
		a = append(id.AppendJSON(append(a, `"id":`...)), ',')
	}
	a = appendString(append(a, `"method":`...), method)
	b.Write(a)
	if params != nil {
		if err := writeParams(b, params); err != nil {
			return fmt.Errorf("jsonrpc: params of %s: %w", method, err)
		}
	}
	b.WriteByte('}')
	return nil
}

var errParams = errors.New("must be an object or an array")

// writeParams writes the params member. What encodes to null is left out.
func writeParams(b *bytes.Buffer, params any) error {
	// Written first and taken back if it is null: to know that before, the value would have to be
	// encoded twice.
	start := b.Len()
	b.WriteString(`,"params":`)
	value := b.Len()
	if err := writeValue(b, params); err != nil {
		return err
	}
	// The first byte shows the kind. Params that are a struct pointer, a map or a type with a
	// MarshalJSON may all be null, which only the result shows.
	switch b.Bytes()[value] {
	case '{', '[':
		return nil
	case 'n':
		b.Truncate(start)
		return nil
	}
	return errParams
}

// writeResult writes a successful response.
func (p *Peer) writeResult(b *bytes.Buffer, id ID, result any) error {
	a := p.begin(b.AvailableBuffer())
	a = id.AppendJSON(append(a, `"id":`...))
	b.Write(append(a, `,"result":`...))
	if err := writeValue(b, result); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

// writeError writes an error response; the zero ID is written as null.
func (p *Peer) writeError(b *bytes.Buffer, id ID, e *Error) {
	a := p.begin(b.AvailableBuffer())
	a = id.AppendJSON(append(a, `"id":`...))
	a = strconv.AppendInt(append(a, `,"error":{"code":`...), int64(e.Code), 10)
	// JSON-RPC requires a message.
	msg := e.Message
	if msg == "" {
		msg = e.Code.Error()
	}
	b.Write(appendString(append(a, `,"message":`...), msg))
	if len(e.Data) > 0 {
		mark := b.Len()
		b.WriteString(`,"data":`)
		// Data that is not JSON is omitted: without an answer the other side would wait.
		if writeRaw(b, e.Data) != nil {
			b.Truncate(mark)
		}
	}
	b.WriteString("}}")
}

// writeValue writes v as JSON without a line feed.
func writeValue(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
		return nil
	case json.RawMessage:
		return writeRaw(b, v)
	case *json.RawMessage:
		if v == nil {
			return writeRaw(b, nil)
		}
		return writeRaw(b, *v)
	}
	return jsonx.MarshalWrite(b, v)
}

var errRaw = errors.New("raw message is not valid JSON")

// writeRaw writes a raw value as it is, but checked, and compacted if it has
// a line feed in it; nil as null. The check keeps a caller's mistake from breaking the
// connection: an unclosed brace would swallow the envelope.
func writeRaw(b *bytes.Buffer, raw []byte) error {
	if len(raw) == 0 {
		b.WriteString("null")
		return nil
	}
	if _, f := checkValue(raw, 10000, nil); f != scanOK {
		return errRaw
	}
	if bytes.IndexByte(raw, '\n') >= 0 {
		return json.Compact(b, raw)
	}
	b.Write(bytes.TrimLeft(raw, " \t\r"))
	return nil
}

// decode reads a raw result into v, which may be nil. A raw message is copied, because the
// result shares memory with other messages that were read with it.
func decode(raw []byte, v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*v = bytes.Clone(raw)
		return nil
	}
	return jsonx.Unmarshal(raw, v)
}
