import org.apache.woden.ErrorHandler;
import org.apache.woden.ErrorInfo;
import org.apache.woden.WSDLFactory;
import org.apache.woden.WSDLReader;

/** Apache Woden reads a description in WSDL 2.0 by the schema and the assertions of the W3C: WodenJudge <file> <operations> */
public class WodenJudge {
    public static void main(String[] arguments) throws Exception {
        var reader = WSDLFactory.newInstance().newWSDLReader();
        reader.setFeature(WSDLReader.FEATURE_VALIDATION, true);
        reader.getErrorReporter().setErrorHandler(new ErrorHandler() {
            public void warning(ErrorInfo told) {
                // That a namespace should be an address: ours is a name.
                check(told.getKey().equals("Description-1001"), told.toString());
            }

            public void error(ErrorInfo told) {
                throw new AssertionError(told);
            }

            public void fatalError(ErrorInfo told) {
                throw new AssertionError(told);
            }
        });
        var description = reader.readWSDL(new java.io.File(arguments[0]).toURI().toString());
        var operations = description.getInterfaces()[0].getInterfaceOperations();
        check(operations.length == Integer.parseInt(arguments[1]), operations.length + " operations");
        for (var operation : operations) {
            var messages = operation.getInterfaceMessageReferences();
            check(messages.length == 2, operation.getName() + " has no two messages");
            for (var message : messages) {
                var isElement = message.getMessageContentModel().equals("#element");
                check(!isElement || message.getElementDeclaration() != null, operation.getName() + " lacks an element");
            }
        }
        var binding = description.getBindings()[0];
        check(binding.getBindingOperations().length == operations.length, "bound are all");
        check(description.getServices()[0].getEndpoints()[0].getBinding().equals(binding), "an endpoint");
        System.out.println("Woden is content");
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }
}
