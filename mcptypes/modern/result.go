package modern

// The values of resultType in the specification and in the tasks extension. The schema
// admits any string.
const (
	ResultTypeComplete      ResultType = "complete"       // the request's own result
	ResultTypeInputRequired ResultType = "input_required" // see [InputRequiredResult]
	ResultTypeTask          ResultType = "task"           // see [CreateTaskResult]
)
