package dynamoguard

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// legacy are the parameters that requests had before expressions. DynamoDB takes
// none beside an expression, so a request with them cannot be completed, and a
// delete that became a put without them would lose its condition.
type legacy struct {
	expected map[string]types.ExpectedAttributeValue
	operator types.ConditionalOperator
	updates  map[string]types.AttributeValueUpdate
}

func (l legacy) refused() error {
	field, instead := "", "ConditionExpression"
	switch {
	case l.expected != nil:
		field = "Expected"
	case l.operator != "":
		field = "ConditionalOperator"
	case l.updates != nil:
		field, instead = "AttributeUpdates", "UpdateExpression"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s cannot be guarded: use %s", fence.ErrInvalid, field, instead)
}
