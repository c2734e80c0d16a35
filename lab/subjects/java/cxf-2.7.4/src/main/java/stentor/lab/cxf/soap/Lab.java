package stentor.lab.cxf.soap;

import javax.jws.WebMethod;
import javax.jws.WebParam;
import javax.jws.WebResult;
import javax.jws.WebService;
import javax.jws.soap.SOAPBinding;

/** The service, as JAX-WS has it. */
@WebService(name = "Lab", targetNamespace = Lab.NAMESPACE)
@SOAPBinding(parameterStyle = SOAPBinding.ParameterStyle.BARE)
public interface Lab {
    String NAMESPACE = "urn:stentor:lab";

    @WebMethod(action = NAMESPACE + "#echo")
    @WebResult(name = "echoResponse", targetNamespace = NAMESPACE)
    Holder echo(@WebParam(name = "echo", targetNamespace = NAMESPACE) Holder request);

    @WebMethod(action = NAMESPACE + "#sort")
    @WebResult(name = "sortResponse", targetNamespace = NAMESPACE)
    Holder sort(@WebParam(name = "sort", targetNamespace = NAMESPACE) Holder request);

    @WebMethod(action = NAMESPACE + "#array")
    @WebResult(name = "arrayResponse", targetNamespace = NAMESPACE)
    Holder array(@WebParam(name = "array", targetNamespace = NAMESPACE) Holder request);

    @WebMethod(action = NAMESPACE + "#points")
    @WebResult(name = "pointsResponse", targetNamespace = NAMESPACE)
    Holder points(@WebParam(name = "points", targetNamespace = NAMESPACE) Holder request);
}
