package codec

// Constrained reads a value. A strict decoder also checks its text; package assert makes such a
// check from a JSON schema.
func Constrained[T any](to *T, d *Decoder, check func(raw []byte) error, read func(*T, *Decoder) error) error {
	if !d.strict {
		return read(to, d)
	}
	before := d.state
	raw, err := d.raw()
	if err != nil {
		return err
	}
	if err := check(raw); err != nil {
		return asError(err, "")
	}
	d.state = before
	return read(to, d)
}
