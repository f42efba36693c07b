package protocol

// ModelList is the models that a conversation can be started with.
type ModelList struct {
	// Models are the known models, the default first.
	Models []Model
	// Notes say what could not be determined, and whether the list was cut.
	Notes []string
}

// Model is a model that can be chosen by its Name, a slug.
type Model struct {
	Name string
	// Profiles are the profiles of config.toml that choose it.
	Profiles []string
	// Description is for people; "" without one.
	Description string
	// Efforts are the efforts that the model takes; nil if unknown.
	Efforts []ReasoningEffort
	// DefaultEffort is the effort of a conversation that names none; "" if unknown.
	DefaultEffort ReasoningEffort
	// IsDefault is true for the model of a conversation that names none.
	IsDefault bool
}
