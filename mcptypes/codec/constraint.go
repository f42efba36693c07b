package codec

// Constrained reads a value. A strict decoder also checks its text; package assert makes such a
// check from a JSON schema.
func Constrained[T any](to *T, d *Decoder, check func(raw []byte) error, read func(*T, *Decoder) error) error {
	if !d.strict {
		return read(to, d)
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if err := check(raw); err != nil {
		return asError(err, string(d.StackPointer()))
	}
	return d.again(raw, func(sub *Decoder) error { return read(to, sub) })
}
