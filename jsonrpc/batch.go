package jsonrpc

import "bytes"

// maxBatch is how many messages a batch may have.
const maxBatch = 256

// batch collects the answers to one array of messages (JSON-RPC 2.0, section 6). They leave as
// one array when the last is there. The peer's lock guards it.
type batch struct {
	due     int           // answers that are missing, and one while the array is dispatched
	answers *bytes.Buffer // "[", and the answers so far; nil before the first
}

// receiveBatch dispatches the messages of a valid array.
func (p *Peer) receiveBatch(line []byte) {
	elements, fault := splitBatch(line)
	if fault != nil {
		p.problem(fault, line)
		p.refuse(nil, ID{}, fault)
		return
	}
	b := &batch{due: 1}
	seen := map[ID]bool{}
	for _, one := range elements {
		one = bytes.Clone(one) // what keeps one does not keep the others
		var m message
		m.parse(one, p.d)
		if m.kind == kindRequest {
			// The first may have been answered already, so accept cannot refuse the second.
			if seen[m.id] {
				m.kind, m.fault = kindInvalid, Errorf(CodeInvalidRequest, "id %s occurs twice in the batch", m.id)
			}
			seen[m.id] = true
		}
		p.dispatch(&m, one, b)
	}
	_ = p.post(b, nil, regardless, byWriter)
}

// splitBatch returns the elements of a valid array.
func splitBatch(line []byte) (elements [][]byte, fault *Error) {
	i := skipSpace(line, skipSpace(line, 0)+1)
	if line[i] == ']' {
		return nil, Errorf(CodeInvalidRequest, "the batch is empty")
	}
	for {
		if len(elements) == maxBatch {
			return nil, Errorf(CodeInvalidRequest, "the batch has more than %d messages", maxBatch)
		}
		end, _ := skipValue(line, i, len(line), nil) // the depth was checked
		elements = append(elements, line[i:end])
		if i = skipSpace(line, end); line[i] == ']' {
			return elements, nil
		}
		i = skipSpace(line, i+1)
	}
}

// expect counts an answer that is due. A nil batch is that of a message that came alone.
func (p *Peer) expect(b *batch) {
	if b != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.due++
	}
}

// add adds an answer that was due; nil if there is none. It returns what is to be sent now, or
// nil, and how many bytes more are held back.
func (b *batch) add(answer *bytes.Buffer) (whole *bytes.Buffer, held int) {
	if answer != nil {
		before := 0
		if b.answers == nil {
			b.answers = getBuffer()
			b.answers.WriteByte('[')
		} else {
			before = b.answers.Len()
			b.answers.WriteByte(',')
		}
		b.answers.Write(answer.Bytes())
		putBuffer(answer)
		held = b.answers.Len() - before
	}
	if b.due--; b.due > 0 || b.answers == nil {
		return nil, held
	}
	held -= b.answers.Len()
	b.answers.WriteByte(']')
	return b.answers, held
}

// hold adds an answer to its batch, and returns what is to be sent now, or nil.
func (p *Peer) hold(b *batch, answer *bytes.Buffer) *bytes.Buffer {
	p.mu.Lock()
	whole, held := b.add(answer)
	p.held += held
	full := p.held > 2*p.o.MaxUnsent
	p.mu.Unlock()
	if full {
		p.out.close(ErrFull) // before the handlers end, whose answers would complete batches
		p.broke(ErrFull)
	}
	return whole
}
